import { expect, test } from 'vitest';

import type { PastAttempt } from '../api/types.ts';
import { barsOf } from './bars.ts';

const at = (s: number) => new Date(s * 1000).toISOString();
const attempt = (job: string, number: number, placed: number, started: number | null, ended: number | null): PastAttempt => ({
  job, number, namespace: 'vision', name: job, cluster: 'north', outcome: '', gpus: 4,
  placed_at: at(placed), started_at: started === null ? null : at(started), ended_at: ended === null ? null : at(ended),
});

test('attempts of one job are on one line, in their order, cut to the time that is shown', () => {
  const lines = barsOf(
    [attempt('b', 1, 150, null, null), attempt('a', 2, 140, 150, 160), attempt('a', 1, 90, 95, 120)], 100_000, 200_000,
  );
  expect(lines.map(({ name, bars }) => [name, bars.map(({ left, held, ran }) => [left, held, ran])])).toEqual([
    ['vision/b', [[50, 50, 0]]],
    ['vision/a', [[0, 0, 20], [40, 10, 10]]],
  ]);
});
