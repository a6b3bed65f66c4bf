/** What steers a cluster, and the taints its cordon and its drain are over kubectl. Pure. */
import type { Cluster } from '../api/types.ts';

export type Steering = 'cordon' | 'uncordon' | 'drain';

export const CORDONED = { key: 'convoy.dev/cordoned', effect: 'NoSchedule' };
export const DRAINED = { key: 'convoy.dev/drained', effect: 'NoExecute' };

/** The heartbeat keeps these; people cannot change them. */
const OF_HEALTH = ['cluster.karmada.io/not-ready', 'cluster.karmada.io/unreachable'];

/** The key of the mutation, by which its page knows that the cluster may be gone at any moment. */
export const detaching = (name: string) => ['detach', name];

type Taint = Cluster['taints'][number];

export function isOfHealth({ key }: Taint): boolean {
  return OF_HEALTH.includes(key);
}

/** Not of health, nor the cordon's or the drain's, which buttons of their own set and remove. */
export function isOfPeople(taint: Taint): boolean {
  const drains = taint.key === DRAINED.key && taint.effect === DRAINED.effect;
  return !isOfHealth(taint) && taint.key !== CORDONED.key && !drains;
}

export function peoplesTaints({ taints }: Pick<Cluster, 'taints'>): Cluster['taints'] {
  return taints.filter(isOfPeople);
}

/** Whether jobs have to leave the cluster: it is drained, or has been lost. */
export function hasToBeLeft({ taints }: Pick<Cluster, 'taints'>): boolean {
  return taints.some(({ effect }) => effect === 'NoExecute');
}
