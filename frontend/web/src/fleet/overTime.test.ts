import { expect, test } from 'vitest';

import type { Series } from '../api/types.ts';
import { gpuParts, reachChanges } from './overTime.ts';

const answer = (series: Series['series']): Series => ({
  by: 'fleet', start: 100, step: 10, count: series[0]!.values.length, is_cut: false, series,
});

test('used, held, free and away are all GPUs there are, step by step', () => {
  const parts = gpuParts(
    answer([
      { metric: 'requested', name: '', values: [3, 2, null] },
      { metric: 'capacity', name: '', values: [12, 8, null] },
      { metric: 'free', name: '', values: [7, 6, null] },
      { metric: 'unreachable', name: '', values: [0, 4, null] },
    ]),
    '',
  );
  expect(parts.map(({ id, values }) => [id, values])).toEqual([
    ['used', [3, 2, null]],
    ['held', [2, 0, null]],
    ['free', [7, 6, null]],
    ['away', [0, 4, null]],
  ]);
});

test('a cluster is marked where it is lost and where it is back', () => {
  const changes = reachChanges(
    answer([
      { metric: 'unreachable', name: 'north', values: [0, 0, 32, null, 32, 0] },
      { metric: 'unreachable', name: 'south', values: [null, 8, 8, 8, 8, 8] },
      { metric: 'unreachable', name: 'spot', values: [0, 4, 2, 0, 0, 0] },
    ]),
  );
  expect(changes).toEqual([
    { at: 110, name: 'spot', lost: true },
    { at: 120, name: 'north', lost: true },
    { at: 130, name: 'spot', lost: false },
    { at: 150, name: 'north', lost: false },
  ]);
});
