/** Cordon, drain, open again: each asks first and says what it would do to the jobs, by the scheduler's own reckoning. */
import { Group } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import { useMay } from '../api/me.ts';
import type { Cluster } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsToSteer } from './commands.ts';
import { drainQuery } from './queries.ts';
import { Renew } from './Renew.tsx';
import type { Steering } from './steering.ts';

export function ClusterActions({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<Steering | null>(null);
  const { cordoned, drained } = cluster;
  const may = useMay('cordon');
  const shown: Steering[] = [cordoned || drained ? 'uncordon' : 'cordon', ...(drained ? [] : ['drain' as const])];
  return (
    <Group gap="xs">
      {shown.map((action) => (
        <ActionButton
          key={action}
          size="xs"
          variant="default"
          obstacle={may ? '' : t('jobs.notAllowed')}
          onClick={() => setAsked(action)}
        >
          {t(`cluster.action.${action}`)}
        </ActionButton>
      ))}
      <Renew cluster={cluster} />
      {asked && <Ask action={asked} cluster={cluster} onClose={() => setAsked(null)} />}
    </Group>
  );
}

function Ask({ action, cluster, onClose }: { action: Steering; cluster: Cluster; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const preview = useQuery({ ...drainQuery(cluster.name), enabled: action === 'drain' });
  const act = useMutation({
    mutationFn: () => api.post(`clusters/${encodeURIComponent(cluster.name)}/${action}/`),
    onSuccess: () => {
      void refetch(client, 'clusters');
      onClose();
    },
  });
  const moved = preview.data?.differences ?? [];
  const waits = moved.filter(({ after }) => after.outcome === 'Waits');
  const effect =
    action !== 'drain'
      ? ''
      : preview.data
        ? t('cluster.drainEffect', { count: cluster.jobs.running + cluster.jobs.placed, waits: waits.length })
        : t('cluster.reckoning');
  return (
    <ConfirmDialog
      title={t(`cluster.ask.${action}.title`, { name: cluster.name })}
      body={`${t(`cluster.ask.${action}.body`)} ${effect}`}
      action={t(`cluster.action.${action}`)}
      dangerous={action === 'drain'}
      commands={commandsToSteer(action, cluster)}
      pending={act.isPending}
      error={act.error}
      onConfirm={() => act.mutate()}
      onClose={onClose}
    />
  );
}
