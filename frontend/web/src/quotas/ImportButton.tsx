/** A whole tree from a file: looked at by the server first, saved once its changes and effect were shown. */
import { Button, FileButton, Group, Modal, Textarea } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Upload } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { QuotaPreview, QuotaSaved, QuotaTree } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { EffectList } from './EffectList.tsx';
import { useReplace } from './queries.ts';

interface Props {
  /** The tree it replaces; undefined: the first one. */
  tree?: QuotaTree;
  obstacle: string;
  onSaved: (saved: QuotaSaved) => void;
}

export function ImportButton({ tree, obstacle, onSaved }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [open, setOpen] = useState(false);
  return (
    <>
      <ActionButton size="xs" variant="default" leftSection={<Upload size={14} aria-hidden />} obstacle={obstacle} onClick={() => setOpen(true)}>
        {t('deferred:quotas.import')}
      </ActionButton>
      {open && <ImportDialog tree={tree} onClose={() => setOpen(false)} onSaved={onSaved} />}
    </>
  );
}

interface DialogProps {
  tree: QuotaTree | undefined;
  onClose: () => void;
  onSaved: (saved: QuotaSaved) => void;
}

function ImportDialog({ tree, onClose, onSaved }: DialogProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [yaml, setYaml] = useState('');
  const look = useMutation({ mutationFn: (text: string) => api.post<QuotaPreview>('quota/tree/preview/', { yaml: text, simulate: true }) });
  const save = useReplace((saved) => {
    onClose();
    onSaved(saved);
  });
  const change = (text: string) => {
    setYaml(text);
    look.reset();
  };
  const body = { yaml, comment: t('deferred:quotas.imported'), ...(tree ? { generation: tree.generation } : {}) };
  return (
    <Modal opened onClose={onClose} title={t('deferred:quotas.importTitle')} size={640} closeButtonProps={{ 'aria-label': t('common.close') }}>
      <Textarea label={t('deferred:quotas.importText')} rows={12} value={yaml} spellCheck={false} data-autofocus onChange={(event) => change(event.currentTarget.value)} />
      <Refusal error={look.error ?? save.error} />
      {look.data && (
        <section aria-label={t('deferred:quotas.effect')} aria-live="polite">
          <p>{t('deferred:quotas.touched', { count: look.data.touched.length })}</p>
          <ul>
            {look.data.touched.map((path) => (
              <li key={path}>{path}</li>
            ))}
          </ul>
          <EffectList preview={look.data} />
        </section>
      )}
      <Group justify="flex-end" mt="lg" gap="xs">
        <FileButton accept=".yaml,.yml,.json" onChange={(file) => void file?.text().then(change)}>
          {(props) => (
            <Button variant="subtle" {...props}>
              {t('deferred:quotas.chooseFile')}
            </Button>
          )}
        </FileButton>
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button variant="default" disabled={yaml.trim() === ''} loading={look.isPending} onClick={() => look.mutate(yaml)}>
          {t('deferred:quotas.preview')}
        </Button>
        <Button disabled={!look.data?.saves} loading={save.isPending} onClick={() => save.mutate(body)}>
          {t('deferred:quotas.apply')}
        </Button>
      </Group>
    </Modal>
  );
}
