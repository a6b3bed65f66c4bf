/** The fleet added up: what can be reached now, and apart from it what is on clusters that are not ready. Pure. */
import type { Capacity, Cluster } from '../api/types.ts';
import { addCapacity, NOTHING } from './resources.ts';

export interface Silent {
  name: string;
  gpus: number;
  /** When it was last heard of, or became what it is. */
  since: string;
}

export interface FleetTotals {
  /** Of the clusters that are ready: no gang can use what is free on the others. */
  gpus: Capacity;
  /** Of all clusters. */
  allGpus: number;
  silent: Silent[];
  clusters: { total: number; ready: number };
  nodes: { total: number; ready: number };
  /** Placed or sent, and not running yet. */
  starting: number;
}

export function isReachable({ state }: Pick<Cluster, 'state'>): boolean {
  return state === 'Ready';
}

export function silentSince({ last_heartbeat: heard, state, state_since: since }: Pick<Cluster, 'last_heartbeat' | 'state' | 'state_since'>): string {
  return state === 'Unknown' && heard ? heard : since;
}

export function totalsOf(clusters: Cluster[]): FleetTotals {
  const ready = clusters.filter(isReachable);
  const gpusOf = ({ gpus }: Cluster): Capacity => gpus;
  const sum = (of: Cluster[], amount: (cluster: Cluster) => number) => of.reduce((all, cluster) => all + amount(cluster), 0);
  return {
    gpus: ready.map(gpusOf).reduce(addCapacity, NOTHING),
    allGpus: sum(clusters, (cluster) => gpusOf(cluster).allocatable),
    silent: clusters
      .filter((cluster) => !isReachable(cluster))
      .map((cluster) => ({ name: cluster.name, gpus: gpusOf(cluster).allocatable, since: silentSince(cluster) })),
    clusters: { total: clusters.length, ready: ready.length },
    nodes: { total: sum(clusters, ({ nodes }) => nodes.total), ready: sum(ready, ({ nodes }) => nodes.ready) },
    starting: sum(ready, ({ jobs }) => jobs.placed),
  };
}
