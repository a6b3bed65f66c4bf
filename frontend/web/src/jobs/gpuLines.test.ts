import { expect, test } from 'vitest';

import type { JobGpu } from '../api/types.ts';
import { leastUsed, LISTED, linesOf, timesOfHistory } from './gpuLines.ts';

const history = (count: number) => ({
  start: 60, step: 60,
  lines: Array.from({ length: count }, (_, i) => ({ node: 'n', gpu: String(i), pod: 'p', values: [i * 10, null] })),
});
const shown = (count: number) => linesOf(history(count), (pod, gpu) => `${pod} ${gpu}`, (name) => name);

test('up to eight GPUs each have a line', () => {
  expect(shown(8).map(({ label }) => label)).toEqual(['p 0', 'p 1', 'p 2', 'p 3', 'p 4', 'p 5', 'p 6', 'p 7']);
  expect(timesOfHistory(history(1))).toEqual([60, 120]);
});

test('of more the lowest, the mean and the highest are drawn, of what is known', () => {
  expect(shown(9).map(({ label, values }) => [label, values])).toEqual([
    ['highest', [80, null]], ['mean', [40, null]], ['lowest', [0, null]],
  ]);
});

test('without GPUs there is nothing', () => {
  expect([shown(0), timesOfHistory(history(0))]).toEqual([[], []]);
});

test('of many GPUs the least used are listed, those that are not measured last', () => {
  const gpus = [null, ...Array.from({ length: 20 }, (_, i) => 100 - i)].map((utilization, i) => ({ gpu: String(i), utilization }) as JobGpu);
  expect(leastUsed(gpus).map(({ utilization }) => utilization)).toEqual(Array.from({ length: LISTED }, (_, i) => 81 + i));
  expect(leastUsed(gpus.slice(0, 2)).map(({ gpu }) => gpu)).toEqual(['0', '1']);
});
