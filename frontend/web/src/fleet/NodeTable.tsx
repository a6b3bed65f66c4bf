/** A cluster's nodes, each with what is left on it. */
import { Ban, CircleCheck, CircleHelp, CircleX } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Capacity, Node } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { DataTable, type Column } from '../ui/DataTable.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import { GpuBar } from './GpuBar.tsx';
import { NodeExclude } from './NodeExclude.tsx';
import { formatAmount } from './resources.ts';

interface Props {
  nodes: Node[] | undefined;
  ordering: string;
  onOrder: (ordering: string) => void;
  stale: boolean;
  /** The cluster answers: what is shown of its nodes is as it is now. */
  known: boolean;
}

export function NodeTable({ nodes, known, ...order }: Props) {
  const { t, i18n } = useTranslation();
  const free = (node: Node, resource: string) =>
    formatAmount(resource, (node.allocatable[resource] ?? 0) - (node.requested[resource] ?? 0), i18n.language);
  const columns: Column<Node>[] = [
    { id: 'name', sort: 'name', header: t('cluster.node'), cell: (node) => <Link className="cv-mono" to={pageOf(node)}>{node.name}</Link> },
    { id: 'state', sort: 'ready', header: t('fleet.state'), cell: (node) => (known ? <NodeBadge node={node} /> : <StateBadge tone="neutral" icon={CircleHelp} label={t('clusterState.Unknown')} />) },
    {
      id: 'gpus',
      header: t('gpus.title'),
      width: '24%',
      cell: (node) => <GpuBar name={node.name} capacity={gpusOf(node)} legend={false} />,
    },
    { id: 'taken', header: t('gpus.column.free'), term: 'free', align: 'end', cell: (node) => (known ? <Free capacity={gpusOf(node)} /> : `? / ${gpusOf(node).allocatable}`) },
    { id: 'cpu', header: t('cluster.cpuFree'), align: 'end', cell: (node) => (known ? free(node, 'cpu') : '?') },
    { id: 'memory', header: t('cluster.memoryFree'), align: 'end', cell: (node) => (known ? free(node, 'memory') : '?') },
    { id: 'actions', header: t('jobs.column.actions'), quiet: true, align: 'end', cell: (node) => <NodeExclude node={node} /> },
  ];
  return <DataTable caption={t('cluster.nodes')} columns={columns} rows={nodes} rowKey={({ name }) => name} {...order} />;
}

/** The address of a node's own page. */
export function pageOf({ cluster, name }: Pick<Node, 'cluster' | 'name'>): string {
  return `/fleet/${encodeURIComponent(cluster)}/nodes/${encodeURIComponent(name)}`;
}

function Free({ capacity }: { capacity: Capacity }) {
  return `${capacity.free} / ${capacity.allocatable}`;
}

function gpusOf({ gpus: { allocatable, requested } }: Node): Capacity {
  return { allocatable, requested, held: 0, free: Math.max(0, allocatable - requested) };
}

export function NodeBadge({ node }: { node: Node }) {
  const { t } = useTranslation();
  if (!node.ready) return <StateBadge tone="bad" icon={CircleX} label={t('clusterState.NotReady')} />;
  if (node.unschedulable) return <StateBadge tone="warn" icon={Ban} label={t('fleet.cordoned')} />;
  if (node.excluded) {
    return <StateBadge tone="warn" icon={Ban} label={t(node.excluded.drains ? 'fleet.drained' : 'fleet.excluded')} meaning={node.excluded.message} />;
  }
  return <StateBadge tone="good" icon={CircleCheck} label={t('clusterState.Ready')} />;
}
