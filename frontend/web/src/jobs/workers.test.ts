import { describe, expect, test } from 'vitest';

import type { JobDetail } from '../api/types.ts';
import type { Attempt } from './types.ts';
import { workersOverTime } from './workers.ts';

const AT = Date.parse('2026-11-26T04:00:00Z');
const after = (seconds: number) => new Date(AT + seconds * 1000).toISOString();
const role = { name: 'worker', replicas: 4, gpus: 2, request: {} };
const job = { gpus: 9, size: { worker: { replicas: 4, min: 2, max: 6 } }, roles: [{ name: 'master', replicas: 1, gpus: 1, request: {} }, role] } as unknown as JobDetail;
const attempt = (fields: object) => ({ ended_at: null, sizes: [], gpus: 9, ...fields }) as unknown as Attempt;
const at = (shown: NonNullable<ReturnType<typeof workersOverTime>>, seconds: number) =>
  shown.values[shown.times.findIndex((time) => time * 1000 <= AT + seconds * 1000 && AT + seconds * 1000 < (time + shown.step) * 1000)];

describe('the workers of an elastic job over time', () => {
  test('are counted by its GPUs, without those of other roles, and are none while it waits', () => {
    const sizes = [
      { until: after(40), gpus: 9 },
      { until: after(70), gpus: 5 },
    ];
    const attempts = [attempt({ placed_at: after(0), ended_at: after(20), gpus: 13 }), attempt({ placed_at: after(30), sizes })];
    const shown = workersOverTime(job, attempts, AT + 100_500);
    expect(shown).toMatchObject({ role: 'worker', min: 2, max: 6, step: 1 });
    if (!shown) throw new Error('nothing is shown');
    expect([5, 25, 35, 60, 80].map((seconds) => at(shown, seconds))).toEqual([6, 0, 4, 2, 4]);
    expect(shown.values.at(-1)).toBe(4);
  });

  test('have no more steps than a chart can show, however long it ran', () => {
    const shown = workersOverTime(job, [attempt({ placed_at: after(0) })], AT + 90 * 86_400_000);
    expect(shown?.values.length).toBeLessThanOrEqual(122);
    expect(new Set(shown?.values)).toEqual(new Set([4]));
  });

  test('are not known of a job that is not elastic, has no GPUs or was never placed', () => {
    expect(workersOverTime({ ...job, size: null }, [attempt({ placed_at: after(0) })], AT)).toBeNull();
    expect(workersOverTime({ ...job, roles: [{ ...role, gpus: 0 }] }, [attempt({ placed_at: after(0) })], AT)).toBeNull();
    expect(workersOverTime(job, [], AT)).toBeNull();
  });
});
