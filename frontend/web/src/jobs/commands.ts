/** The same job, list or action on a command line. */
import type { Job } from '../api/types.ts';
import { type Commands, convoy, curl, kubectl, kubectlPatch, listOf, within } from '../ui/commands.ts';
import type { JobFilters } from './filters.ts';
import type { OrderName } from './orders.ts';
import type { Action } from './states.ts';

type Named = Pick<Job, 'id' | 'api_version' | 'kind' | 'namespace' | 'name'>;

const KUBEFLOW = 'kubeflow.org';
/** Their definitions know no switch: an annotation is it. */
const BY_ANNOTATION = ['kai.alibabacloud.com', 'batch.volcano.sh'];

export function commandsOf({ id, ...job }: Named): Commands {
  const words = ['describe', wordOf(job), job.name, '-n', job.namespace];
  return { kubectl: kubectl(...words), cli: convoy(...words), curl: curl(`jobs/${id}/`) };
}

export function commandsOfLog(job: Named, pod: string, attempt: number): Commands {
  const words = [wordOf(job), job.name, '-n', job.namespace];
  return {
    cli: convoy('logs', '-f', ...words, '--pod', pod, '--attempt', String(attempt)),
    curl: curl(listOf(`jobs/${job.id}/logs/`, { pod, attempt: String(attempt), follow: 'true' })),
  };
}

export function commandsToAct(action: Action, job: Named): Commands {
  const target = [wordOf(job), job.name, '-n', job.namespace];
  if (action === 'delete') {
    return { kubectl: kubectl('delete', ...target), cli: convoy('delete', ...target), curl: curl(`jobs/${job.id}/`, 'DELETE') };
  }
  return {
    kubectl: kubectlPatch(target, switched(job, action === 'suspend')),
    cli: convoy(action, ...target),
    curl: curl(`jobs/${job.id}/${action}/`, 'POST'),
  };
}

export function commandsToOrder(action: OrderName, ids: string[], values: Record<string, string | number>): Commands {
  return { curl: curl('jobs/bulk/', 'POST', { action, ids, preview: false, ...values }) };
}

const ONLY_REST = ['search', 'state', 'cluster', 'queue', 'reason', 'policy', 'user'] as const;

/** kubectl and the command line narrow by namespace, kind and labels; only REST by all. */
export function commandsOfList(filters: JobFilters): Commands {
  const { namespace, kind, labels } = filters;
  const words = [...within(namespace), ...(labels ? ['-l', labels] : [])];
  const narrower = ONLY_REST.some((name) => filters[name] !== '');
  return {
    kubectl: narrower ? undefined : kubectl('get', kind.toLowerCase() || 'all', ...words),
    cli: narrower ? undefined : convoy('get', kind.toLowerCase() || 'jobs', ...words),
    curl: curl(listOf('jobs/', { ...filters })),
  };
}

/** A kind's word for kubectl and the command line alike. */
function wordOf({ api_version: version, kind }: Pick<Job, 'api_version' | 'kind'>): string {
  if (kind !== 'Job') return kind.toLowerCase();
  return groupOf(version) === 'batch' ? 'job.batch' : `jobs.${groupOf(version)}`;
}

function switched({ api_version: version }: Pick<Job, 'api_version'>, suspend: boolean): unknown {
  const group = groupOf(version);
  if (group === KUBEFLOW) return { spec: { runPolicy: { suspend } } };
  if (BY_ANNOTATION.includes(group)) return { metadata: { annotations: { 'scheduling.x-k8s.io/suspend': String(suspend) } } };
  return { spec: { suspend } };
}

const groupOf = (version: string) => version.split('/')[0] ?? '';
