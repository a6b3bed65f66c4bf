/** The whole fleet added up. Pure. */
import type { Capacity, Cluster } from '../api/types.ts';
import { accelerators, addCapacity, NOTHING } from './resources.ts';

export interface FleetTotals {
  gpus: Capacity;
  clusters: { total: number; ready: number };
  nodes: { total: number; ready: number };
}

export function totalsOf(clusters: Cluster[]): FleetTotals {
  const sum = (amount: (cluster: Cluster) => number) => clusters.reduce((all, cluster) => all + amount(cluster), 0);
  return {
    gpus: clusters.reduce((all, { capacity }) => addCapacity(all, accelerators(capacity)), NOTHING),
    clusters: { total: clusters.length, ready: clusters.filter(({ state }) => state === 'Ready').length },
    nodes: { total: sum(({ nodes }) => nodes.total), ready: sum(({ nodes }) => nodes.ready) },
  };
}
