/** One cluster: what it has, and node by node how full it is. */
import { Anchor, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';

import { Link } from '../scope/Link.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ClusterActions } from './ClusterActions.tsx';
import { ClusterCard } from './ClusterCard.tsx';
import { commandsOfCluster } from './commands.ts';
import { GpuMap } from './GpuMap.tsx';
import { NodeTable } from './NodeTable.tsx';
import { clustersQuery, nodesQuery } from './queries.ts';
import classes from './ClusterPage.module.css';

export default function ClusterPage() {
  const { t } = useTranslation();
  const { name = '' } = useParams();
  const clusters = useQuery(clustersQuery);
  const nodes = useQuery(nodesQuery(name));
  const cluster = clusters.data?.results.find((one) => one.name === name);
  return (
    <>
      <PageHeader title={name} note={nodes.data && t('cluster.nodeCount', { count: nodes.data.count })}>
        <CopyAs commands={commandsOfCluster(name)} />
        {cluster && <ClusterActions cluster={cluster} />}
        <Anchor component={Link} to="/fleet" size="sm">
          {t('cluster.back')}
        </Anchor>
      </PageHeader>
      <div className={classes['columns']}>
        {cluster ? <ClusterCard cluster={cluster} /> : <Skeleton height={252} radius={8} visible={clusters.isPending} />}
        <div className={classes['main']}>
          <GpuMap cluster={name} />
          <Panel title={t('cluster.nodes')} flush>
            {!nodes.data && nodes.error && <Failed error={nodes.error} onRetry={() => void nodes.refetch()} />}
            {nodes.data?.count === 0 && (
              <Empty title={t('cluster.emptyTitle')} icon={Server}>
                {t('cluster.emptyBody')}
              </Empty>
            )}
            {!nodes.error && nodes.data?.count !== 0 && <NodeTable nodes={nodes.data?.results} />}
          </Panel>
        </div>
      </div>
    </>
  );
}
