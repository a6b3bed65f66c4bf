/** Cordon, drain, open again: each asks first and says what it would do to the jobs, by the scheduler's own reckoning. */
import { Button, Group } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import type { Cluster } from '../api/types.ts';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { lossQuery } from './queries.ts';

type Action = 'cordon' | 'uncordon' | 'drain';

/** The heartbeat keeps these; people cannot change them. */
const OF_HEALTH = ['cluster.karmada.io/not-ready', 'cluster.karmada.io/unreachable'];
const DRAINED = { key: 'convoy.dev/drained', effect: 'NoExecute' };

export function ClusterActions({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<Action | null>(null);
  const drained = cluster.taints.some(({ key }) => key === DRAINED.key);
  const may = useMay('cordon');
  const shown: Action[] = [cluster.cordoned || drained ? 'uncordon' : 'cordon', ...(drained ? [] : ['drain' as const])];
  return (
    <Group gap="xs">
      {shown.map((action) => (
        <Button
          key={action}
          size="xs"
          variant="default"
          disabled={!may}
          title={may ? undefined : t('jobs.notAllowed')}
          onClick={() => setAsked(action)}
        >
          {t(`cluster.action.${action}`)}
        </Button>
      ))}
      {asked && <Ask action={asked} cluster={cluster} onClose={() => setAsked(null)} />}
    </Group>
  );
}

function Ask({ action, cluster, onClose }: { action: Action; cluster: Cluster; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const loss = useQuery({ ...lossQuery(cluster.name), enabled: action === 'drain' });
  const act = useMutation({
    mutationFn: () => send(action, cluster),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['clusters'] });
      onClose();
    },
  });
  const moved = loss.data?.differences ?? [];
  const waits = moved.filter(({ after }) => after.outcome === 'Waits');
  const effect =
    action !== 'drain'
      ? ''
      : loss.data
        ? t('cluster.drainEffect', { count: cluster.jobs.running + cluster.jobs.placed, waits: waits.length })
        : t('cluster.reckoning');
  return (
    <ConfirmDialog
      title={t(`cluster.ask.${action}.title`, { name: cluster.name })}
      body={`${t(`cluster.ask.${action}.body`)} ${effect}`}
      action={t(`cluster.action.${action}`)}
      dangerous={action === 'drain'}
      pending={act.isPending}
      error={act.error}
      onConfirm={() => act.mutate()}
      onClose={onClose}
    />
  );
}

async function send(action: Action, cluster: Cluster): Promise<void> {
  const path = `clusters/${encodeURIComponent(cluster.name)}/`;
  const others = cluster.taints.filter(({ key }) => key !== DRAINED.key && !OF_HEALTH.includes(key));
  if (action === 'cordon') await api.post(`${path}cordon/`);
  if (action === 'drain') await api.patch(path, { taints: [...others, DRAINED] });
  if (action === 'uncordon') {
    if (others.length < cluster.taints.length) await api.patch(path, { taints: others });
    await api.post(`${path}uncordon/`);
  }
}
