/** Asks before something that helps is done: what it is, what it does to others, and the same on a command line. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import type { JobDetail } from '../api/types.ts';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { actionWords, helpWords } from './help.ts';
import type { Step } from './types.ts';

interface Props {
  step: Step;
  job: JobDetail;
  onClose: () => void;
}

type Done = 'OpenQueue' | 'Uncordon' | 'Resume' | 'RestoreCluster';

export function RemedyDialog({ step, job, onClose }: Props) {
  const kind = step.kind as Done;
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const paths = {
    OpenQueue: `queues/${step.queue}/open/`,
    Uncordon: `clusters/${encodeURIComponent(step.cluster)}/uncordon/`,
    Resume: `jobs/${job.id}/resume/`,
    RestoreCluster: `clusters/${encodeURIComponent(step.cluster)}/revive/`,
  };
  const act = useMutation({
    mutationFn: () => api.post(paths[kind], kind === 'OpenQueue' ? { comment: t('deferred:help.openedFor', { job: job.name }) } : undefined),
    onSuccess: () => {
      void refetch(client, 'jobs', 'clusters', 'quotas');
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={t(`deferred:helpAsk.${kind}`, { path: step.path, cluster: step.cluster, name: job.name })}
      body={`${helpWords(step, job, { t, language: i18n.language })} ${t(`deferred:helpEffect.${kind}`)}`}
      action={actionWords(step, 'do', t)}
      pending={act.isPending}
      error={act.error}
      onConfirm={() => act.mutate()}
      onClose={onClose}
    />
  );
}
