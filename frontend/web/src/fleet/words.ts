/** Reasons, verdicts and events in the reader's language, built from codes and amounts. Pure. */
import type { i18n as I18n } from 'i18next';

import type { Amounts, JobEvent, Reason } from '../api/types.ts';
import type en from '../locales/en.json';
import { polished } from '../ui/serverText.ts';
import { amountsText, isAccelerator } from './resources.ts';

export type Words = Pick<I18n, 't' | 'language'>;

const MAX_JOBS = 'kube-queue/max-jobs';

export function listOf(parts: string[], language: string): string {
  return new Intl.ListFormat(language, { type: 'conjunction' }).format(parts);
}

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

export interface Looked {
  cluster: string;
  code: string;
  short?: Amounts;
  cause?: string;
  role?: string;
  never?: boolean;
}

type VerdictKey = keyof (typeof en)['verdict'];

const OF_CAUSE: Record<string, VerdictKey> = {
  NoNodeAllowed: 'NoNodeAllowed',
  NodeTooSmall: 'NodeTooSmall',
  NotTogether: 'NotTogether',
  NoDomain: 'NoDomain',
  Unsure: 'Unsure',
};
const VERDICTS: Record<string, VerdictKey> = {
  Fits: 'Fits',
  NotSelected: 'NotSelected',
  DataElsewhere: 'DataElsewhere',
  NotReady: 'NotReady',
  Cordoned: 'Cordoned',
  CapacityUnknown: 'CapacityUnknown',
  UntoleratedTaint: 'UntoleratedTaint',
  KindNotServed: 'KindNotServed',
  SchedulerNotServed: 'SchedulerNotServed',
  CannotReserve: 'CannotReserve',
  FailedHere: 'FailedHere',
  NotEnoughFree: 'NotEnoughFree',
  NoNodeForPod: 'NoNodeForPod',
  NodesExcluded: 'NodesExcluded',
  KeptForGang: 'KeptForGang',
};

/** What stands in the way on one cluster. */
export function verdictWords({ code, short = {}, cause = '', role = '', never = false }: Looked, words: Words): string {
  const amounts = amountWords(short, words);
  const crowded = code === 'NotEnoughFree' || code === 'NoNodeForPod';
  const ofCause = role || cause === 'NotTogether' || cause === 'Unsure' ? OF_CAUSE[cause] : undefined;
  if (crowded && ofCause) return words.t(`verdict.${ofCause}`, { role });
  if (crowded && amounts && never) return words.t('verdict.ShortEmpty', { amounts });
  if (crowded && amounts) return words.t(code === 'NoNodeForPod' ? 'verdict.Fragmented' : 'verdict.Short', { amounts });
  const key = VERDICTS[code];
  return key ? words.t(`verdict.${key}`) : code;
}

interface Subject {
  kind: string;
  namespace: string;
  cluster: string | null;
}

type ReasonKey = keyof (typeof en)['reason'];

/** Reasons whose sentence needs no amounts; the others are built below. */
const REASONS: Record<string, ReasonKey> = {
  WaitingForScheduler: 'WaitingForScheduler',
  NoPolicy: 'NoPolicy',
  SchedulingSuspended: 'SchedulingSuspended',
  Suspended: 'Suspended',
  NoQuotaForNamespace: 'NoQuotaForNamespace',
  Reclaimed: 'Reclaimed',
  NoCluster: 'NoCluster',
  PlanRejected: 'PlanRejected',
  WaitingForMember: 'WaitingForMember',
  WaitingForCluster: 'WaitingForCluster',
  WaitingForPurge: 'WaitingForPurge',
  WaitingForPods: 'WaitingForPods',
  MemberRefused: 'MemberRefused',
  ApplicationUnhealthy: 'ApplicationUnhealthy',
  ClusterLost: 'ClusterLost',
  CopyVanished: 'CopyVanished',
  AttemptsExhausted: 'AttemptsExhausted',
  MaxWaitExceeded: 'MaxWaitExceeded',
  MaxRuntimeExceeded: 'MaxRuntimeExceeded',
  DeadlineExceeded: 'DeadlineExceeded',
  WaitingForJob: 'WaitingForJob',
  PredecessorFailed: 'PredecessorFailed',
  Deleting: 'Deleting',
  Failed: 'Failed',
};

/** Why a job is where it is, with the shortage named. */
export function reasonWords(reason: Reason, job: Subject, words: Words): string {
  const { t } = words;
  const place = job.cluster ?? t('reason.itsCluster');
  switch (reason.code) {
    case 'QuotaExceeded':
    case 'MaxJobsReached':
    case 'NeverFits':
      return quotaWords(reason, words);
    case 'BehindInQueue':
      return t(reason.quota?.blocker ? 'reason.BehindInQueue' : 'reason.BehindOthers', { blocker: reason.quota?.blocker });
    case 'QueueHeld':
      return t('reason.QueueHeld', { path: reason.quota?.path, state: stateWords(reason.quota?.state ?? '', words) });
    case 'BudgetSpent':
      return budgetWords(reason, words);
    case 'WindowAhead':
      return windowWords(reason, words);
    case 'WaitingForReclaim':
      return reclaimWords(reason, words);
    case 'NoClusterFits':
      return nearestWords(reason, words);
  }
  const key = REASONS[reason.code];
  return key ? t(`reason.${key}`, { kind: job.kind, namespace: job.namespace, cluster: place }) : reason.code;
}

function budgetWords({ quota }: Reason, { t, language }: Words): string {
  const time = quota?.until ? new Date(quota.until).toLocaleString(language, { timeStyle: 'short', dateStyle: 'medium' }) : '';
  const per = t(`quotas.per.${(quota?.per ?? 'month') as 'month'}`);
  return t('reason.BudgetSpent', { path: quota?.path, used: quota?.used_gpu_hours?.toFixed(1), hours: quota?.gpu_hours, per, time });
}

function windowWords({ quota }: Reason, { t, language }: Words): string {
  const time = (at?: string | null) => (at ? new Date(at).toLocaleString(language, { timeStyle: 'short', dateStyle: 'medium' }) : '');
  return t('reason.WindowAhead', { path: quota?.window, begin: time(quota?.begin), until: time(quota?.until) });
}

function quotaWords({ code, quota }: Reason, words: Words): string {
  const { t } = words;
  const resource = quota?.resource;
  if (!quota || !resource) return t('reason.NeverFitsAnywhere');
  const limit = quota.max ?? quota.min ?? 0;
  const { asked = 0, used = 0, kept = 0, path } = quota;
  const amount = (value: number) => amountWords({ [resource]: value }, words) || String(value);
  const bound = quota.max === undefined ? 'min' : 'max';
  const facts = { path, bound, limit: amount(limit), asked: amount(asked), used: amount(used) };
  const more = kept > 0 ? ` ${t('reason.kept', { kept: amount(kept) })}` : '';
  if (code === 'MaxJobsReached') return t('reason.MaxJobsReached', facts);
  if (code === 'NeverFits') return t('reason.NeverFits', { ...facts, short: amount(asked + kept - limit) }) + more;
  return t('reason.QuotaExceeded', { ...facts, short: amount(used + kept + asked - limit) }) + more;
}

function stateWords(state: string, { t }: Words): string {
  return state === 'Held' || state === 'Draining' || state === 'Stopped' || state === 'Open' ? t(`queueState.${state}`) : state;
}

function reclaimWords({ quota }: Reason, { t, language }: Words): string {
  const count = quota?.from_jobs?.length ?? 0;
  const time = quota?.until ? new Date(quota.until).toLocaleTimeString(language) : '';
  return t('reason.WaitingForReclaim', { count }) + (time ? ` ${t('reason.until', { time })}` : '');
}

/** How many clusters were looked at, and what the one that is short of least lacks. */
function nearestWords({ clusters = [] }: Reason, words: Words): string {
  const { t } = words;
  const lack = ({ short = {} }: Looked) => Math.max(...Object.values(short), 0);
  const crowded = clusters.filter((each) => lack(each) > 0).sort((a, b) => lack(a) - lack(b));
  const nearest: Looked | undefined = crowded[0] ?? clusters[0];
  const summary = t('reason.NoClusterFits', { count: clusters.length });
  return nearest ? `${summary} ${t('reason.nearest', { cluster: nearest.cluster, verdict: inSentence(verdictWords(nearest, words)) })}` : summary;
}

/** A verdict stands alone with a capital, within a sentence without; an unknown code is written as it is. */
function inSentence(text: string): string {
  return text.includes(' ') ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

type EventKey = keyof (typeof en)['event'];

/** The server's own sentence in English; in other languages what the event's code says. */
export function eventWords({ reason, message }: Pick<JobEvent, 'reason' | 'message'>, { t, language }: Words): string {
  if (reason === PLACED) return placedWords(message, { t, language });
  if (language === 'en' && message !== '') return polished(message);
  const key = `event.${reason as EventKey}` as const;
  const text = t(key);
  return text === key ? t('event.other', { reason }) : text;
}

const PLACED = 'ScheduleBindingSucceed';

/** Its message is written for programs: `... Result: {north:0,[{master 1}]}`. */
function placedWords(message: string, { t, language }: Words): string {
  const clusters = [...message.matchAll(/(?:[{,]|\s)([a-z0-9][a-z0-9.-]*):\d/g)].map(([, name = '']) => name);
  const text = t(`event.${PLACED}`);
  return clusters.length > 0 ? `${text}: ${listOf([...new Set(clusters)], language)}` : text;
}
