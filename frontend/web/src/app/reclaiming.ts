/** Which node of a simulated cluster the tour takes back under an elastic job. */
import { api } from '../api/client.ts';
import type { Job, Page, Pod } from '../api/types.ts';

export interface Reclaimed {
  job: string;
  cluster: string;
  node: string;
  /** Workers that it had. */
  size: number;
}

export const nodePath = ({ cluster, node }: Reclaimed) => `clusters/${encodeURIComponent(cluster)}/nodes/${encodeURIComponent(node)}/reclaim/`;
export const workers = ({ size }: Pick<Job, 'size'>) => Object.values(size ?? {})[0];

/** The node of the job's last pod: the pod that a smaller size would lose first. None: no pod runs at the moment. */
export async function targetOf(job: Job): Promise<Reclaimed | null> {
  const pods = await api.get<Page<Pod>>(`jobs/${job.id}/pods/`, { query: { page_size: 200 } });
  const there = pods.results.filter(({ node, cluster, phase, attempt }) => node && cluster === job.cluster && phase === 'Running' && attempt === job.attempt);
  const last = there.sort((a, b) => b.index - a.index)[0];
  return last ? { job: job.id, cluster: job.cluster ?? '', node: last.node, size: workers(job)?.replicas ?? 0 } : null;
}
