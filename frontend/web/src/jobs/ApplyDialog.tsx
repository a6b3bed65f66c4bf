/** A remedy that is one manifest: shown whole with what applying it would do, applied here, or edited first. */
import { Button, Group, Modal, Skeleton, Text, Textarea } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { stringify } from 'yaml';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import type { ApplyPreview, JobDetail } from '../api/types.ts';
import { useGo } from '../scope/useScope.ts';
import { curlFile, kubectl } from '../ui/commands.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { actionWords, helpWords } from './help.ts';
import type { Step } from './types.ts';
import classes from './JobYaml.module.css';

const COMMANDS = { kubectl: kubectl('apply', '-f', 'file.yaml'), curl: curlFile('apply/', 'file.yaml') };

export function ApplyDialog({ step, job, onClose }: { step: Step; job: JobDetail; onClose: () => void }) {
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const go = useGo();
  const text = stringify(step.manifest, { lineWidth: 0 });
  const preview = useQuery({
    queryKey: ['apply', 'preview', text],
    queryFn: ({ signal }) => api.postYaml<ApplyPreview>('apply/preview/', text, signal),
    retry: false,
    gcTime: 0,
  });
  const apply = useMutation({
    mutationFn: () => api.postYaml('apply/', text),
    onSuccess: () => {
      void refetch(client, 'jobs', 'policies', 'quotas');
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={actionWords(step, 'apply', t)} size={640} closeButtonProps={{ 'aria-label': t('common.close') }}>
      <Text size="sm">{helpWords(step, job, { t, language: i18n.language })}</Text>
      <Textarea readOnly rows={14} my="sm" aria-label={t('deferred:submit.yaml')} value={text} classNames={{ input: classes['text'] ?? '' }} />
      {preview.error && <Failed error={preview.error} onRetry={() => void preview.refetch()} />}
      {preview.isPending && <Skeleton height={20} aria-busy />}
      {preview.data && <Would preview={preview.data} />}
      <Refusal error={apply.error} />
      <Group justify="flex-end" mt="lg" gap="xs">
        <CopyAs commands={COMMANDS} />
        <Button variant="subtle" onClick={() => go('/submit', { state: { text } })}>
          {t('deferred:help.editFirst')}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button loading={apply.isPending} disabled={!preview.isSuccess} onClick={() => apply.mutate()} data-autofocus>
          {t('deferred:quotas.apply')}
        </Button>
      </Group>
    </Modal>
  );
}

function Would({ preview: { applied } }: { preview: ApplyPreview }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <div role="status" aria-label={t('deferred:submit.preview')}>
      {applied.map(({ kind, namespace, name, action }) => (
        <p key={kind + name}>{t(`deferred:help.would.${action}`, { what: `${kind} ${namespace ? `${namespace}/` : ''}${name}` })}</p>
      ))}
    </div>
  );
}
