/** Draining a cluster: which jobs leave it by name, where each would go, at which pace; then how far that is. */
import { Anchor, Button, Skeleton } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { CircleCheck, Server } from 'lucide-react';
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
import { Panel } from '../ui/Panel.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import classes from './ClusterPage.module.css';
import { commandsToSteer } from './commands.ts';
import { DrainPace } from './DrainPace.tsx';
import { DrainPanel } from './DrainPanel.tsx';
import { OutcomeTable } from './OutcomeTable.tsx';
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

/** What the next cycle would do, asked of the scheduler and not estimated here. */
function Effect({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation('deferred');
  const { data, error, isFetching, refetch: again } = useQuery(drainQuery(cluster.name));
  if (!data && error) {
    return (
      <Panel title={t('drain.effect')}>
        <Failed error={error} onRetry={() => void again()} />
      </Panel>
    );
  }
  if (!data) return <Skeleton height={160} radius={8} aria-busy />;
  const leaving = data.differences.filter(({ before }) => before.outcome === 'Runs');
  const waiting = leaving.filter(({ after }) => after.outcome === 'Waits');
  const others = data.differences.filter(({ before }) => before.outcome !== 'Runs');
  const unlisted = Math.max(cluster.jobs.running + cluster.jobs.placed - leaving.length, 0);
  const actions = (
    <Button size="compact-xs" variant="default" loading={isFetching} onClick={() => void again()}>
      {t('drain.again')}
    </Button>
  );
  return (
    <>
      <Panel title={t('drain.effect')} actions={actions} flush={leaving.length > 0}>
        {leaving.length === 0 && unlisted === 0 && (
          <Empty title={t('drain.nothingTitle', { name: cluster.name })} icon={CircleCheck}>
            {t('drain.nothingBody')}
          </Empty>
        )}
        {leaving.length > 0 && (
          <p className={classes['note']}>
            {t('drain.leaves', { count: leaving.length })} {t('drain.waits', { count: waiting.length })}
          </p>
        )}
        {unlisted > 0 && <p className={classes['note']}>{t('drain.unlisted', { count: unlisted })}</p>}
        {leaving.length > 0 && <OutcomeTable caption={t('drain.effect')} differences={leaving} />}
      </Panel>
      {others.length > 0 && (
        <Panel title={t('drain.others')} flush>
          <OutcomeTable caption={t('drain.others')} differences={others} />
        </Panel>
      )}
    </>
  );
}
