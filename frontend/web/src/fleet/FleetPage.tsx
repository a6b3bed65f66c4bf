/** The fleet: what it has, what is used, what waits and why, what moves, what happened, which clusters are well. */
import { Button, SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Network, Plus } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link, useSearchParams } from 'react-router';

import type { Cluster } from '../api/types.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { Blockers } from './Blockers.tsx';
import { ClusterCard } from './ClusterCard.tsx';
import { ClusterTable } from './ClusterTable.tsx';
import panels from './FleetPanels.module.css';
import { FleetTiles } from './FleetTiles.tsx';
import { GpuModels } from './GpuModels.tsx';
import { Moves } from './Moves.tsx';
import { clustersQuery, waitingQuery } from './queries.ts';
import { Ticker } from './Ticker.tsx';
import { totalsOf } from './totals.ts';
import classes from './FleetPage.module.css';

export default function FleetPage() {
  const { t } = useTranslation();
  const [params, setParams] = useSearchParams();
  const { data, error, refetch } = useQuery(clustersQuery);
  const waiting = useQuery(waitingQuery);
  const view = params.get('view') === 'table' ? 'table' : 'cards';
  const clusters = data?.results;
  return (
    <>
      <PageHeader title={t('fleet.title')} note={data && t('fleet.count', { count: data.count })}>
        <Button component={Link} to="/join" size="xs" variant="default" leftSection={<Plus size={14} aria-hidden />}>
          {t('join.title')}
        </Button>
        <SegmentedControl
          size="xs"
          aria-label={t('fleet.view')}
          value={view}
          onChange={(next) => setParams(next === 'table' ? { view: next } : {}, { replace: true })}
          data={[
            { value: 'cards', label: t('fleet.cards') },
            { value: 'table', label: t('fleet.table') },
          ]}
        />
      </PageHeader>
      {!clusters && error && (
        <Panel>
          <Failed error={error} onRetry={() => void refetch()} />
        </Panel>
      )}
      {!clusters && !error && <Loading />}
      {clusters?.length === 0 && <NoClusters />}
      {clusters && clusters.length > 0 && (
        <>
          <FleetTiles totals={totalsOf(clusters)} waiting={waiting.data?.count} />
          <div className={panels['panels']}>
            <GpuModels />
            <Blockers />
            <Moves />
            <Ticker />
          </div>
          {view === 'table' ? <ClusterTable clusters={clusters} /> : <Cards clusters={clusters} />}
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
