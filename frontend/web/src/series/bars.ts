/** Attempts as bars on a line of time, those of one job on one line. Pure. */
import type { PastAttempt } from '../api/types.ts';

export interface JobBars {
  job: string;
  name: string;
  bars: Bar[];
}

export interface Bar {
  attempt: PastAttempt;
  /** In hundredths of the time that is shown. */
  left: number;
  held: number;
  ran: number;
}

export function barsOf(attempts: PastAttempt[], start: number, end: number): JobBars[] {
  const lines = new Map<string, JobBars>();
  const share = (from: number, to: number) => (Math.max(0, Math.min(to, end) - Math.max(from, start)) / (end - start)) * 100;
  for (const attempt of attempts) {
    const line = lines.get(attempt.job) ?? { job: attempt.job, name: `${attempt.namespace}/${attempt.name}`, bars: [] };
    lines.set(attempt.job, line);
    const placed = Date.parse(attempt.placed_at);
    const ended = attempt.ended_at === null ? end : Date.parse(attempt.ended_at);
    const started = attempt.started_at === null ? ended : Math.min(ended, Date.parse(attempt.started_at));
    line.bars.unshift({ attempt, left: share(start, placed), held: share(placed, started), ran: share(started, ended) });
  }
  return [...lines.values()];
}
