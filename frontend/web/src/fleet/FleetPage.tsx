/** The fleet: what it has, what is used, what waits and why, what moves, what happened, which clusters are well. */
import { Button, SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Network, Plus, SearchX } from 'lucide-react';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import type { Cluster } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useChangeParams, useScope } from '../scope/useScope.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { Blockers } from './Blockers.tsx';
import { ClusterCard } from './ClusterCard.tsx';
import { ClusterTable } from './ClusterTable.tsx';
import { commandsOfFleet } from './commands.ts';
import panels from './FleetPanels.module.css';
import { FleetTiles } from './FleetTiles.tsx';
import { GpuModels } from './GpuModels.tsx';
import { GpusOverTime } from './GpusOverTime.tsx';
import { Moves } from './Moves.tsx';
import { clustersQuery, jobCountQuery } from './queries.ts';
import { Ticker } from './Ticker.tsx';
import { totalsOf } from './totals.ts';
import classes from './FleetPage.module.css';

const FleetGpuMap = lazy(async () => ({ default: (await import('./FleetGpuMap.tsx')).FleetGpuMap }));

const VIEWS = ['cards', 'table', 'gpus'] as const;

export default function FleetPage() {
  const { t } = useTranslation();
  const [params] = useSearchParams();
  const change = useChangeParams();
  const scope = useScope();
  const { data, error, refetch } = useQuery(clustersQuery);
  const waiting = useQuery(jobCountQuery('Queued', scope));
  const running = useQuery(jobCountQuery('Running', scope));
  const view = VIEWS.find((each) => each === params.get('view')) ?? 'cards';
  const clusters = data?.results.filter(({ name }) => !scope.cluster || name === scope.cluster);
  return (
    <>
      <PageHeader title={t('fleet.title')} note={clusters && t('fleet.count', { count: clusters.length })}>
        <Button component={Link} to="/join" size="xs" variant="default" leftSection={<Plus size={14} aria-hidden />}>
          {t('join.title')}
        </Button>
        <CopyAs commands={commandsOfFleet()} />
        <SegmentedControl
          size="xs"
          aria-label={t('fleet.view')}
          value={view}
          onChange={(next) => change({ view: next === 'cards' ? '' : next }, { replace: true })}
          data={[
            { value: 'cards', label: t('fleet.cards') },
            { value: 'table', label: t('fleet.table') },
            { value: 'gpus', label: t('gpus.title') },
          ]}
        />
      </PageHeader>
      <p className={classes['what']}>
        {t('fleet.what')} {clusters?.some(({ simulated }) => simulated) && <strong>{t('fleet.simulatedNote')}</strong>}
      </p>
      {!clusters && error && (
        <Panel>
          <Failed error={error} onRetry={() => void refetch()} />
        </Panel>
      )}
      {!clusters && !error && <Loading />}
      {data?.count === 0 && <NoClusters />}
      {data && data.count > 0 && clusters?.length === 0 && <NotOneOfThem name={scope.cluster} />}
      {clusters && clusters.length > 0 && (
        <>
          <FleetTiles totals={totalsOf(clusters)} waiting={waiting.data?.count} running={running.data?.count} />
          <div className={panels['wide']}>
            <GpusOverTime />
          </div>
          <div className={panels['panels']}>
            <GpuModels />
            <Blockers />
            <Moves />
            <Ticker />
          </div>
          {view === 'table' && <ClusterTable clusters={clusters} />}
          {view === 'cards' && <Cards clusters={clusters} />}
          {view === 'gpus' && (
            <Suspense fallback={<Skeleton height={200} radius={8} aria-busy />}>
              <FleetGpuMap clusters={clusters} />
            </Suspense>
          )}
        </>
      )}
    </>
  );
}

function Cards({ clusters }: { clusters: Cluster[] }) {
  return (
    <div className={classes['cards']}>
      {clusters.map((cluster) => (
        <ClusterCard key={cluster.name} cluster={cluster} />
      ))}
    </div>
  );
}

function NoClusters() {
  const { t } = useTranslation();
  return (
    <Panel>
      <Empty title={t('fleet.emptyTitle')} icon={Network}>
        {t('fleet.emptyBody')} <code className="cv-mono">convoy cluster join --kubeconfig FILE</code>
      </Empty>
    </Panel>
  );
}

function NotOneOfThem({ name }: { name: string }) {
  const { t } = useTranslation();
  return (
    <Panel>
      <Empty title={t('scope.noCluster', { name })} icon={SearchX}>
        <Link to="/fleet?cluster=">{t('scope.whole')}</Link>
      </Empty>
    </Panel>
  );
}

function Loading() {
  return (
    <div aria-busy>
      <Skeleton height={118} radius={8} mb={16} />
      <div className={classes['cards']}>
        {[1, 2, 3].map((key) => (
          <Skeleton key={key} height={252} radius={8} />
        ))}
      </div>
    </div>
  );
}
