/** What would help, put into words from its structure; and where its button leads. Pure. */
import type { Amounts, JobDetail } from '../api/types.ts';
import { isAccelerator } from '../fleet/resources.ts';
import { amountWords, listOf, type Words } from '../fleet/words.ts';
import type en from '../locales/en.json';
import type { Step } from './types.ts';

const MAX_JOBS = 'kube-queue/max-jobs';

export function helpWords(step: Step, job: Pick<JobDetail, 'namespace' | 'kind'>, words: Words): string {
  const { t, language } = words;
  const time = step.at ? new Date(step.at).toLocaleString(language, { timeStyle: 'medium', dateStyle: 'short' }) : '';
  const { cluster, path, count, beside, bound, role, by, comment } = step;
  const facts = { cluster, path, count, beside, bound, role, by, comment, time };
  const all = { ...facts, namespace: job.namespace, kind: job.kind, amounts: amountWords(step.amounts, words), jobs: jobWords(step, words) };
  switch (step.kind) {
    case 'WaitForJobs':
      return t(count < step.held_by.length ? 'deferred:help.WaitForSome' : cluster ? 'deferred:help.WaitForJobsOn' : 'deferred:help.WaitForJobs', all);
    case 'AddNodes':
      return t('deferred:help.AddNodes', all) + (beside > count ? ` ${t('deferred:help.beside', { count: beside })}` : '');
    case 'LowerRequest':
      return t(role ? 'deferred:help.LowerPod' : 'deferred:help.LowerRequest', all);
    case 'OpenQueue':
      return t(by ? 'deferred:help.OpenQueueBy' : 'deferred:help.OpenQueue', all) + (comment ? ` ${t('deferred:help.comment', { comment })}` : '');
    case 'AllOf':
      return t('deferred:help.AllOf');
    default:
      return t(`deferred:help.${step.kind}`, all);
  }
}

/** The names one may see, and how many others there are with what they hold. */
function jobWords({ held_by: jobs }: Step, words: Words): string {
  const names = jobs.filter(({ name }) => name).map(({ name }) => name);
  const hidden = jobs.filter(({ name }) => !name);
  const held: Amounts = {};
  for (const { amounts } of hidden) for (const [name, amount] of Object.entries(amounts)) held[name] = (held[name] ?? 0) + amount;
  const gpus = Object.fromEntries(Object.entries(held).filter(([name]) => isAccelerator(name) || name === MAX_JOBS));
  if (hidden.length > 0) {
    const amounts = amountWords(gpus, words);
    names.push(words.t(amounts ? 'deferred:help.hiddenWith' : 'deferred:help.hidden', { count: hidden.length, amounts }));
  }
  return listOf(names, words.language);
}

/** The draft of these limits, opened in the quota page with its effect. */
export function draftOf(steps: Step[]): string {
  const params = new URLSearchParams();
  const [first] = steps;
  if (first) params.set('node', first.path);
  for (const { path, bound, amounts } of steps) {
    for (const [resource, amount] of Object.entries(amounts)) {
      params.append('raise', [path, bound, resource, resource === 'cpu' ? `${amount}m` : String(amount)].join(' '));
      if (!params.getAll('resource').includes(resource)) params.append('resource', resource);
    }
  }
  return `/quotas?${params}`;
}

type Acting = keyof (typeof en)['helpAction'];

/** How a remedy is carried out: at once after a question, by a manifest, by a draft, on a page, or by time alone. */
export type Way = 'do' | 'apply' | 'namespace' | 'suspend' | 'draft' | 'page' | 'time';

const WAYS: Record<Step['kind'], Way> = {
  MakePolicy: 'apply',
  MakeQuotaTree: 'apply',
  Select: 'apply',
  Tolerate: 'apply',
  AddNamespace: 'namespace',
  Resume: 'do',
  OpenQueue: 'do',
  Uncordon: 'do',
  RestoreCluster: 'page',
  WaitForJobs: 'suspend',
  WaitForGang: 'suspend',
  ReturnBorrowed: 'suspend',
  LookAtJob: 'suspend',
  RaiseQuota: 'draft',
  RaiseBudget: 'page',
  EndBefore: 'page',
  LowerRequest: 'page',
  SubmitAgain: 'page',
  ChangeAfter: 'page',
  JoinCluster: 'page',
  LookAtCluster: 'page',
  AddNodes: 'page',
  WaitUntil: 'time',
  AllOf: 'time',
};

/** A simulated cluster that fell silent is brought back by a button; a real one by its administrator. */
export function wayOf({ kind, manifest }: Step, simulated: boolean): Way {
  if (kind === 'RestoreCluster' && simulated) return 'do';
  return WAYS[kind] === 'apply' && Object.keys(manifest).length === 0 ? 'page' : WAYS[kind];
}

/** What the button says. */
export function actionWords({ kind, cluster }: Step, way: Way, t: Words['t']): string {
  const key = kind === 'RestoreCluster' && way === 'do' ? 'helpAction.ReviveCluster' : (`helpAction.${kind as Acting}` as const);
  return t(key, { name: cluster });
}

/** Where what helps is done, with what is known filled in. */
export function pageOf({ kind, cluster }: Step, job: Pick<JobDetail, 'id'>): string {
  if (kind === 'SubmitAgain') return '/submit';
  if (kind === 'LowerRequest' || kind === 'ChangeAfter' || kind === 'EndBefore') return `/submit?job=${encodeURIComponent(job.id)}`;
  if (kind === 'RaiseBudget') return '/quotas';
  if (kind === 'JoinCluster') return '/join';
  return cluster && kind !== 'Select' && kind !== 'Tolerate' ? `/fleet/${encodeURIComponent(cluster)}` : '/policies';
}

/** Who may, for a reader who may not: the role, and for quotas the lead above the node; empty for one who may. */
export function needsWords({ kind, allowed, needs, path, count }: Step, t: Words['t']): string {
  if (allowed || needs === '' || (WAYS[kind] === 'suspend' && count === 0)) return '';
  const led = (kind === 'RaiseQuota' || kind === 'RaiseBudget' || kind === 'OpenQueue') && path.includes('/');
  return t(led ? 'deferred:help.needsLead' : 'deferred:help.needs', { role: needs, path: kind === 'OpenQueue' ? path : path.slice(0, path.lastIndexOf('/')) });
}
