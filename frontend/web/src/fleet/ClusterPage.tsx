/** One cluster: what it has, and node by node how full it is. */
import { Anchor, Skeleton } from '@mantine/core';
import { useIsMutating, useQuery } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';

import { Link } from '../scope/Link.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty } from '../ui/Message.tsx';
import { JobsOverTime } from '../series/JobsOverTime.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { ClusterAccess } from './ClusterAccess.tsx';
import { ClusterActions } from './ClusterActions.tsx';
import { ClusterCard } from './ClusterCard.tsx';
import { commandsOfCluster } from './commands.ts';
import { DrainPanel } from './DrainPanel.tsx';
import { GpuMap } from './GpuMap.tsx';
import { NodesPanel } from './NodesPanel.tsx';
import { clustersQuery } from './queries.ts';
import { SpotPanel } from './SpotPanel.tsx';
import { detaching, hasToBeLeft } from './steering.ts';
import { Taints } from './Taints.tsx';
import classes from './ClusterPage.module.css';

const ClusterUse = lazy(async () => ({ default: (await import('./ClusterUse.tsx')).ClusterUse }));

export default function ClusterPage() {
  const { t } = useTranslation();
  const { name = '' } = useParams();
  const clusters = useQuery(clustersQuery);
  const isLeaving = useIsMutating({ mutationKey: detaching(name) }) > 0;
  const cluster = clusters.data?.results.find((one) => one.name === name);
  if (clusters.data && !cluster) return <Empty title={t('cluster.unknown', { name })} icon={Server} />;
  const isShown = !isLeaving && Boolean(cluster ?? clusters.error);
  return (
    <>
      <PageHeader title={name} note={cluster && t('cluster.nodeCount', { count: cluster.nodes.total })}>
        <CopyAs commands={commandsOfCluster(name)} />
        {cluster && <ClusterActions cluster={cluster} />}
        <Anchor component={Link} to="/fleet" size="sm">
          {t('cluster.back')}
        </Anchor>
      </PageHeader>
      <div className={classes['columns']}>
        {cluster ? <ClusterCard cluster={cluster} /> : <Skeleton height={252} radius={8} visible={clusters.isPending} />}
        <div className={classes['main']}>
          {isShown && cluster && hasToBeLeft(cluster) && <DrainPanel name={name} />}
          {isShown && <GpuMap name={name} cluster={cluster} />}
        </div>
      </div>
      {isShown && (
        <div className={classes['wide']}>
          <Suspense fallback={<Skeleton height={330} radius={8} aria-busy />}>
            <ClusterUse name={name} />
          </Suspense>
          <JobsOverTime of={{ cluster: name }} />
          <SpotPanel name={name} />
          <Taints name={name} />
          <ClusterAccess name={name} />
          <NodesPanel key={name} name={name} cluster={cluster} />
        </div>
      )}
    </>
  );
}
