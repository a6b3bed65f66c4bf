/** A namespace without a quota: the leaf it shall belong to is chosen, the effect on the jobs of now is shown, then it is saved. */
import { Button, Group, Modal, NativeSelect, Skeleton } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { QuotaTree } from '../api/types.ts';
import { refetch } from '../api/refetch.ts';
import { EffectList } from '../quotas/EffectList.tsx';
import { previewQuery, treeQuery, useSave } from '../quotas/queries.ts';
import { commandsToSave } from '../quotas/commands.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { ErrorText } from '../ui/ServerText.tsx';

export function NamespaceDialog({ namespace, onClose }: { namespace: string; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data: tree, error, refetch } = useQuery(treeQuery);
  return (
    <Modal opened onClose={onClose} title={t('deferred:help.listNamespace', { namespace })} size={560} closeButtonProps={{ 'aria-label': t('common.close') }}>
      {error && !tree && <Failed error={error} onRetry={() => void refetch()} />}
      {!error && !tree && <Skeleton height={80} aria-busy />}
      {tree && <Chosen tree={tree} namespace={namespace} onClose={onClose} />}
    </Modal>
  );
}

function Chosen({ tree, namespace, onClose }: { tree: QuotaTree; namespace: string; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const leaves = tree.nodes.filter(({ leaf }) => leaf);
  const [path, setPath] = useState(leaves[0]?.path ?? '');
  const listed = leaves.find((leaf) => leaf.path === path)?.namespaces ?? [];
  const changes = path ? [{ op: 'edit' as const, path, set: { namespaces: [...listed, namespace] } }] : [];
  const preview = useQuery(previewQuery(tree.generation, changes));
  const saving = { generation: tree.generation, changes, comment: t('deferred:help.listNamespace', { namespace }) };
  const save = useSave(() => {
    void refetch(client, 'jobs');
    onClose();
  });
  return (
    <>
      <NativeSelect label={t('deferred:help.leaf')} data={leaves.map((leaf) => leaf.path)} value={path} onChange={(event) => setPath(event.currentTarget.value)} data-autofocus />
      <section aria-label={t('deferred:quotas.effect')} aria-live="polite" aria-busy={preview.isFetching}>
        {preview.data && <EffectList preview={preview.data} />}
        {preview.error && <ErrorText error={preview.error} />}
      </section>
      <Refusal error={save.error} />
      <Group justify="flex-end" mt="lg" gap="xs">
        <CopyAs commands={commandsToSave(saving)} />
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button loading={save.isPending} disabled={!preview.data?.saves} onClick={() => save.mutate(saving)}>
          {t('deferred:quotas.apply')}
        </Button>
      </Group>
    </>
  );
}
