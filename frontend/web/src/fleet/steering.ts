/** What steers a cluster: its cordon, and the taint that drains it. Pure. */
import type { Cluster } from '../api/types.ts';

export type Steering = 'cordon' | 'uncordon' | 'drain';

/** How a cordon shows over kubectl. */
export const CORDONED = { key: 'convoy.dev/cordoned', effect: 'NoSchedule' };
export const DRAINED = { key: 'convoy.dev/drained', effect: 'NoExecute' };

/** The heartbeat keeps these; people cannot change them. */
const OF_HEALTH = ['cluster.karmada.io/not-ready', 'cluster.karmada.io/unreachable'];

export function isDrained({ taints }: Pick<Cluster, 'taints'>): boolean {
  return taints.some(({ key }) => key === DRAINED.key);
}

/** Without those of health, of the cordon and of the drain. */
export function peoplesTaints({ taints }: Pick<Cluster, 'taints'>): Cluster['taints'] {
  return taints.filter(({ key }) => ![...OF_HEALTH, DRAINED.key, CORDONED.key].includes(key));
}
