/** What would help, put into words from its structure; and where its button leads. Pure. */
import type { i18n as I18n } from 'i18next';

import type { Amounts, JobDetail } from '../api/types.ts';
import { isAccelerator, amountsText } from '../fleet/resources.ts';
import type { Step } from './types.ts';

const MAX_JOBS = 'kube-queue/max-jobs';

export type Words = Pick<I18n, 't' | 'language'>;

/** "8 GPUs and 2 jobs". */
export function amountWords(amounts: Amounts, { t, language }: Words): string {
  const parts = Object.entries(amounts)
    .filter(([resource]) => resource !== 'pods')
    .map(([resource, amount]) => {
      if (resource === MAX_JOBS) return t('jobs.count', { count: amount });
      if (isAccelerator(resource)) return t('help.gpus', { count: amount });
      return amountsText({ [resource]: amount }, language);
    });
  return listOf(parts, language);
}

export function helpWords(step: Step, job: Pick<JobDetail, 'namespace' | 'kind'>, words: Words): string {
  const { t, language } = words;
  const time = step.at ? new Date(step.at).toLocaleString(language, { timeStyle: 'medium', dateStyle: 'short' }) : '';
  const { cluster, path, count, beside, bound, role, by, comment } = step;
  const facts = { cluster, path, count, beside, bound, role, by, comment, time };
  const all = { ...facts, namespace: job.namespace, kind: job.kind, amounts: amountWords(step.amounts, words), jobs: jobWords(step, words) };
  switch (step.kind) {
    case 'WaitForJobs':
      return t(count < step.held_by.length ? 'help.WaitForSome' : cluster ? 'help.WaitForJobsOn' : 'help.WaitForJobs', all);
    case 'AddNodes':
      return t('help.AddNodes', all) + (beside > count ? ` ${t('help.beside', { count: beside })}` : '');
    case 'LowerRequest':
      return t(role ? 'help.LowerPod' : 'help.LowerRequest', all);
    case 'OpenQueue':
      return t(by ? 'help.OpenQueueBy' : 'help.OpenQueue', all) + (comment ? ` ${t('help.comment', { comment })}` : '');
    case 'AllOf':
      return t('help.AllOf');
    default:
      return t(`help.${step.kind}`, all);
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
    names.push(words.t(amounts ? 'help.hiddenWith' : 'help.hidden', { count: hidden.length, amounts }));
  }
  return listOf(names, words.language);
}

function listOf(parts: string[], language: string): string {
  return new Intl.ListFormat(language, { type: 'conjunction' }).format(parts);
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

type Leading = Exclude<Step['kind'], 'Resume' | 'OpenQueue' | 'Uncordon' | 'AllOf' | 'WaitForJobs' | 'WaitUntil' | 'WaitForGang'>;

/** Where what helps is done, with what is known filled in. */
export function placeOfHelp(step: Step & { kind: Leading }, job: Pick<JobDetail, 'api_version' | 'kind' | 'namespace'>): string {
  const ways: Record<Leading, () => string> = {
    MakePolicy: () => `/submit?${new URLSearchParams({ policy: [job.namespace, job.api_version, job.kind].join(' ') })}`,
    MakeQuotaTree: () => '/quotas',
    AddNamespace: () => '/quotas',
    LookAtJob: () => `/jobs/${step.held_by[0]?.id ?? ''}`,
    ReturnBorrowed: () => `/quotas?node=${encodeURIComponent(step.path)}`,
    RaiseQuota: () => draftOf([step]),
    LowerRequest: () => '?tab=yaml',
    JoinCluster: () => '/join',
    RestoreCluster: () => clusterAt(step.cluster),
    LookAtCluster: () => clusterAt(step.cluster),
    AddNodes: () => clusterAt(step.cluster),
    Tolerate: () => '/policies',
    Select: () => '/policies',
  };
  return ways[step.kind]();
}

export function leads(step: Step): step is Step & { kind: Leading } {
  return !['Resume', 'OpenQueue', 'Uncordon', 'AllOf', 'WaitForJobs', 'WaitUntil', 'WaitForGang'].includes(step.kind);
}

const clusterAt = (name: string) => `/fleet/${encodeURIComponent(name)}`;
