/** Where a cluster stands. Pure. */
import type { Cluster } from '../api/types.ts';

/** A zone that names its region says enough by itself. */
export function placeOf({ region, zone }: Pick<Cluster, 'region' | 'zone'>): string {
  return zone.startsWith(region) ? zone || region : [region, zone].filter(Boolean).join(' · ');
}
