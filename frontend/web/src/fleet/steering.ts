/** What steers a cluster, and the taints its cordon and its drain are over kubectl. Pure. */
import type { Cluster } from '../api/types.ts';

export type Steering = 'cordon' | 'uncordon' | 'drain';

export const CORDONED = { key: 'convoy.dev/cordoned', effect: 'NoSchedule' };
export const DRAINED = { key: 'convoy.dev/drained', effect: 'NoExecute' };

/** The heartbeat keeps these; people cannot change them. */
const OF_HEALTH = ['cluster.karmada.io/not-ready', 'cluster.karmada.io/unreachable'];

/** Without those of health, of the cordon and of the drain. */
export function peoplesTaints({ taints }: Pick<Cluster, 'taints'>): Cluster['taints'] {
  const drains = (taint: { key: string; effect: string }) => taint.key === DRAINED.key && taint.effect === DRAINED.effect;
  return taints.filter((taint) => ![...OF_HEALTH, CORDONED.key].includes(taint.key) && !drains(taint));
}

/** Whether jobs have to leave the cluster: it is drained, or has been lost. */
export function hasToBeLeft({ taints }: Pick<Cluster, 'taints'>): boolean {
  return taints.some(({ effect }) => effect === 'NoExecute');
}
