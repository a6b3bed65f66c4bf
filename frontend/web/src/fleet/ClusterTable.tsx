/** The clusters as a table: the same facts as the cards, for many clusters and for reading aloud. */
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { DataTable, type Column } from '../ui/DataTable.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ClosedBadge, ClusterBadge, SimulatedBadge } from './ClusterBadge.tsx';
import { GpuBar } from './GpuBar.tsx';
import { placeOf } from './place.ts';
import { isReachable } from './totals.ts';
import classes from './ClusterTable.module.css';

export function ClusterTable({ clusters }: { clusters: Cluster[] | undefined }) {
  const { t } = useTranslation();
  return (
    <Panel flush>
      <DataTable caption={t('fleet.title')} columns={useColumns()} rows={clusters} rowKey={({ name }) => name} />
    </Panel>
  );
}

function useColumns(): Column<Cluster>[] {
  const { t } = useTranslation();
  return [
    { id: 'name', header: t('fleet.cluster'), cell: (cluster) => <Name cluster={cluster} /> },
    { id: 'state', header: t('fleet.state'), cell: (cluster) => <State cluster={cluster} /> },
    {
      id: 'bar',
      header: t('gpus.title'),
      width: '18%',
      cell: (row) => isReachable(row) && <GpuBar name={row.name} capacity={row.gpus} legend={false} />,
    },
    ...(['requested', 'held', 'free', 'allocatable'] as const).map(
      (part): Column<Cluster> => ({
        id: part,
        header: t(`gpus.column.${part}`),
        align: 'end',
        cell: (row) => (isReachable(row) || part === 'allocatable' ? row.gpus[part] : '–'),
      }),
    ),
    {
      id: 'nodes',
      header: t('fleet.nodesReady'),
      align: 'end',
      cell: (row) => `${isReachable(row) ? row.nodes.ready : '?'} / ${row.nodes.total}`,
    },
    { id: 'jobs', header: t('fleet.jobsRunning'), term: 'running', align: 'end', cell: ({ jobs }) => jobs.running },
    { id: 'version', header: t('fleet.version'), cell: ({ version }) => version },
    {
      id: 'heartbeat',
      header: t('fleet.heartbeat'),
      align: 'end',
      cell: ({ last_heartbeat: at }) => (at ? <Age since={at} /> : '–'),
    },
  ];
}

function Name({ cluster }: { cluster: Cluster }) {
  return (
    <>
      <Link to={`/fleet/${encodeURIComponent(cluster.name)}`} className={classes['name']}>
        {cluster.name}
      </Link>
      <div className={classes['sub']}>{placeOf(cluster)}</div>
    </>
  );
}

function State({ cluster }: { cluster: Cluster }) {
  return (
    <span className={classes['badges']}>
      <ClusterBadge cluster={cluster} />
      <ClosedBadge cluster={cluster} />
      <SimulatedBadge cluster={cluster} />
    </span>
  );
}
