/**
 * What is supposed on the page: read from the address' fragment and written to it, so that a link carries all of it.
 * The fragment and not the query: manifests may be longer than a server takes, and are nobody's to log. Pure.
 */
import type { Suppose } from '../api/types.ts';

export interface Supposed {
  cluster: string;
  what: 'lose' | 'drain';
  nodes: string;
  nodesIn: string;
  quota: string;
  resource: string;
  min: string;
  max: string;
  job: string;
}

export const NOTHING: Supposed = {
  cluster: '', what: 'lose', nodes: '', nodesIn: '', quota: '', resource: 'nvidia.com/gpu', min: '', max: '', job: '',
};

const KEYS = Object.keys(NOTHING) as (keyof Supposed)[];

export function fromHash(hash: string): Supposed {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const text = Object.fromEntries(KEYS.map((key) => [key, params.get(key) ?? NOTHING[key]])) as unknown as Supposed;
  return { ...text, what: text.what === 'drain' ? 'drain' : 'lose' };
}

export function toHash(supposed: Supposed): string {
  const params = new URLSearchParams();
  for (const key of KEYS) if (supposed[key] !== NOTHING[key]) params.set(key, supposed[key]);
  return params.toString();
}

export type Obstacle = 'nothing' | 'halfNodes' | 'halfQuota';

/** What has to be entered yet before it can be calculated. */
export function obstacleOf({ cluster, nodes, nodesIn, quota, min, max, job }: Supposed): Obstacle | null {
  if ((nodes !== '') !== (nodesIn !== '')) return 'halfNodes';
  if ((quota !== '') !== (min !== '' || max !== '')) return 'halfQuota';
  return [cluster, nodes, quota, job.trim()].every((each) => each === '') ? 'nothing' : null;
}

/** As REST takes it. */
export function bodyOf({ cluster, what, nodes, nodesIn, quota, resource, min, max, job }: Supposed): Suppose {
  const amounts = (amount: string) => (amount === '' ? {} : { [resource]: amount });
  return {
    ...(cluster && (what === 'lose' ? { lose_cluster: cluster } : { drain_cluster: cluster })),
    ...(nodes && { add_nodes: { cluster: nodesIn, count: Number(nodes) } }),
    ...(quota && { raise_quota: { path: quota, min: amounts(min), max: amounts(max) } }),
    ...(job.trim() && { add_job: job }),
  };
}
