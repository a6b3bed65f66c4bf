/** The codes a job can wait for, which the languages have words for. Pure. */
import type en from '../locales/en.json';

type ReasonCode = keyof (typeof en)['why'];

const CODES: Record<ReasonCode, true> = {
  WaitingForScheduler: true,
  NoPolicy: true,
  SchedulingSuspended: true,
  QuotaExceeded: true,
  MaxJobsReached: true,
  BudgetSpent: true,
  WindowAhead: true,
  NeverFits: true,
  BehindInQueue: true,
  QueueHeld: true,
  NoQuotaForNamespace: true,
  WaitingForReclaim: true,
  Reclaimed: true,
  PlanRejected: true,
  NoCluster: true,
  NoClusterFits: true,
  WaitingForJob: true,
  PredecessorFailed: true,
};

export function isReasonCode(code: string): code is ReasonCode {
  return code in CODES;
}
