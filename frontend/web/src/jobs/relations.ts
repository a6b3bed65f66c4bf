/** What a job consists of in the fleet: its copies by cluster, each with its pods by node. Pure. */
import type { JobDetail, Pod } from '../api/types.ts';

export interface Copy {
  cluster: string;
  attempt: number;
  /** What is known of it: of a divided job's share its state, of an earlier attempt why it may run yet. */
  state: string;
  /** Of an attempt that counts no more. */
  isOther: boolean;
  nodes: { name: string; pods: Pod[] }[];
}

/** States in which a copy of the job is in its cluster, or on the way there. */
const ON_MEMBER: JobDetail['state'][] = ['Dispatched', 'Running', 'Reclaiming'];

type Part = Pick<JobDetail, 'state' | 'cluster' | 'attempt' | 'shares' | 'other_copies'>;

export function copiesOf(job: Part, pods: readonly Pod[]): Copy[] {
  const copies: Copy[] = job.shares
    .filter(({ state }) => state !== 'Lost')
    .map(({ cluster, attempt, state }) => ({ cluster, attempt, state, isOther: false, nodes: [] }));
  if (copies.length === 0 && job.cluster && ON_MEMBER.includes(job.state)) {
    copies.push({ cluster: job.cluster, attempt: job.attempt, state: job.state, isOther: false, nodes: [] });
  }
  for (const { cluster, attempt, code } of job.other_copies) copies.push({ cluster, attempt, state: code, isOther: true, nodes: [] });
  for (const pod of pods) {
    const copy = copies.find(({ cluster, attempt }) => cluster === pod.cluster && attempt === pod.attempt);
    const nodes = copy?.nodes ?? [];
    const node = nodes.find(({ name }) => name === pod.node);
    if (node) node.pods.push(pod);
    else nodes.push({ name: pod.node, pods: [pod] });
  }
  return copies;
}
