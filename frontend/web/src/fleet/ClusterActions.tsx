/** Cordon and open again, which ask first; draining and detaching, each with a page or a question of its own. */
import { Group } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import { useMay } from '../api/me.ts';
import type { Cluster } from '../api/types.ts';
import { useGo } from '../scope/useScope.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsToSteer } from './commands.ts';
import { Detach } from './Detach.tsx';
import { Renew } from './Renew.tsx';
import type { Steering } from './steering.ts';

type Asked = Exclude<Steering, 'drain'>;

export function ClusterActions({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const go = useGo();
  const [asked, setAsked] = useState<Asked | null>(null);
  const { cordoned, drained } = cluster;
  const obstacle = useMay('cordon') ? '' : t('jobs.notAllowed');
  const action = cordoned || drained ? 'uncordon' : 'cordon';
  return (
    <Group gap="xs">
      <ActionButton size="xs" variant="default" obstacle={obstacle} onClick={() => setAsked(action)}>
        {t(`cluster.action.${action}`)}
      </ActionButton>
      <ActionButton size="xs" variant="default" obstacle={obstacle} onClick={() => go(`/fleet/${encodeURIComponent(cluster.name)}/drain`)}>
        {t('cluster.action.drain')}
      </ActionButton>
      <Renew cluster={cluster} />
      <Detach cluster={cluster} />
      {asked && <Ask action={asked} cluster={cluster} onClose={() => setAsked(null)} />}
    </Group>
  );
}

function Ask({ action, cluster, onClose }: { action: Asked; cluster: Cluster; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: () => api.post(`clusters/${encodeURIComponent(cluster.name)}/${action}/`),
    onSuccess: () => {
      void refetch(client, 'clusters');
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={t(`cluster.ask.${action}.title`, { name: cluster.name })}
      body={t(`cluster.ask.${action}.body`)}
      action={t(`cluster.action.${action}`)}
      commands={commandsToSteer(action, cluster)}
      pending={act.isPending}
      error={act.error}
      onConfirm={() => act.mutate()}
      onClose={onClose}
    />
  );
}
