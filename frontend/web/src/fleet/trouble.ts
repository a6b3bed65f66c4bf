/** What is wrong with a cluster, as a class that the languages have words for. Pure. */
import type { Cluster } from '../api/types.ts';

export type Trouble = 'silent' | 'common' | 'credentials' | 'unwell';

const OF_REASON: Record<string, Trouble> = {
  ClusterNotReachable: 'silent',
  CredentialsRefused: 'credentials',
  CredentialsUnreadable: 'credentials',
  ClusterNotHealthy: 'unwell',
  DisruptionSuspected: 'common',
};

/** Refused credentials count even where the cluster is ready otherwise: nothing can be sent there. */
export function troubleOf({ state, reason }: Pick<Cluster, 'state' | 'reason'>): Trouble | null {
  const known = OF_REASON[reason];
  if (state === 'Ready') return known === 'credentials' ? known : null;
  return known ?? (state === 'Unknown' ? 'silent' : 'unwell');
}
