/** How many workers an elastic job had over time, from what its attempts had. Pure. */
import type { JobDetail } from '../api/types.ts';
import type { Attempt } from './types.ts';

const STEPS = 120;

export interface WorkersOverTime {
  role: string;
  min: number;
  max: number | null;
  /** Seconds since 1970, and the length of each step. */
  times: number[];
  step: number;
  values: number[];
}

/** The first role that may be resized. Null: none may, its pods have no GPUs to count them by, or it has never been placed. */
export function workersOverTime(job: Pick<JobDetail, 'size' | 'roles' | 'gpus'>, attempts: Attempt[], now: number): WorkersOverTime | null {
  const [role, size] = Object.entries(job.size ?? {})[0] ?? [];
  const each = job.roles.find(({ name }) => name === role)?.gpus ?? 0;
  const begin = Math.min(...attempts.map(({ placed_at }) => Date.parse(placed_at)));
  if (role === undefined || !size || each === 0 || !Number.isFinite(begin)) return null;
  const others = job.gpus - size.replicas * each;
  const spans = attempts.flatMap((attempt) => spansOf(attempt, job.gpus, now));
  const step = Math.max(1, Math.ceil((now - begin) / 1000 / STEPS));
  const first = Math.floor(begin / 1000 / step) * step;
  const times = Array.from({ length: Math.floor((now / 1000 - first) / step) + 1 }, (_, i) => first + i * step);
  const values = times.map((time) => {
    // What a step ends with is what it shows: the latest is then what is so now.
    const at = Math.min((time + step) * 1000 - 1, now);
    const span = spans.find(({ from, until }) => from <= at && at < until);
    return span ? Math.max(0, Math.round((span.gpus - others) / each)) : 0;
  });
  return { role, min: size.min, max: size.max, times, step, values };
}

function spansOf({ placed_at, ended_at, sizes, gpus }: Attempt, all: number, now: number) {
  const ends = [...sizes.map((size) => ({ until: Date.parse(size.until), gpus: size.gpus })), { until: ended_at ? Date.parse(ended_at) : now + 1, gpus: gpus ?? all }];
  return ends.map(({ until, gpus: had }, i) => ({ from: i === 0 ? Date.parse(placed_at) : (ends[i - 1]?.until ?? 0), until, gpus: had }));
}
