/** Draining a cluster: which jobs leave it by name, where each would go, at which pace; then how far that is. */
import { Anchor, Skeleton } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { Cluster } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import classes from './ClusterPage.module.css';
import { commandsToSteer } from './commands.ts';
import { DrainEffect } from './DrainEffect.tsx';
import { DrainPace } from './DrainPace.tsx';
import { DrainPanel } from './DrainPanel.tsx';
import { clustersQuery, drainQuery } from './queries.ts';

export default function DrainPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { name = '' } = useParams();
  const { data, error, refetch: again } = useQuery(clustersQuery);
  const cluster = data?.results.find((one) => one.name === name);
  if (data && !cluster) return <Empty title={t('cluster.unknown', { name })} icon={Server} />;
  return (
    <>
      <PageHeader title={t('deferred:drain.page', { name })}>
        {cluster && <CopyAs commands={commandsToSteer(cluster.drained ? 'uncordon' : 'drain', cluster)} />}
        {cluster && <Steer cluster={cluster} />}
        <Anchor component={Link} to={`/fleet/${encodeURIComponent(name)}`} size="sm">
          {t('deferred:drain.toCluster', { name })}
        </Anchor>
      </PageHeader>
      <div className={classes['main']}>
        {!cluster && error && <Failed error={error} onRetry={() => void again()} />}
        {!cluster && !error && <Skeleton height={160} radius={8} aria-busy />}
        {cluster?.drained && <DrainPanel name={name} />}
        {cluster && <DrainPace name={name} />}
        {cluster && !cluster.drained && <Effect cluster={cluster} />}
      </div>
    </>
  );
}

function Steer({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const may = useMay('cordon');
  const action = cluster.drained ? 'uncordon' : 'drain';
  const act = useMutation({
    mutationFn: () => api.post(`clusters/${encodeURIComponent(cluster.name)}/${action}/`),
    onSuccess: () => void refetch(client, 'clusters'),
  });
  return (
    <>
      <Refusal error={act.error} />
      <ActionButton
        size="xs"
        {...(action === 'drain' ? { color: 'red.9' } : {})}
        obstacle={may ? '' : t('jobs.notAllowed')}
        loading={act.isPending}
        onClick={() => act.mutate()}
      >
        {action === 'drain' ? t('deferred:drain.now', { name: cluster.name }) : t('cluster.action.uncordon')}
      </ActionButton>
    </>
  );
}

function Effect({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation('deferred');
  const answer = useQuery(drainQuery(cluster.name));
  const notes = (_: number, hidden: number) => (hidden > 0 ? [t('node.unseen', { count: hidden })] : []);
  const empty = { title: t('drain.nothingTitle', { name: cluster.name }), body: t('drain.nothingBody') };
  return <DrainEffect answer={answer} title={t('drain.effect')} empty={empty} notes={notes} />;
}
