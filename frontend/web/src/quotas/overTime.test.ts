import { expect, test } from 'vitest';

import type { Series } from '../api/types.ts';
import { quotaLines } from './overTime.ts';

const answer = (values: Record<string, (number | null)[]>): Series => ({
  by: 'queue', start: 0, step: 10, count: 2, is_cut: false,
  series: Object.entries(values).map(([metric, each]) => ({ metric, name: 'root/a', values: each })),
});

test('what is used is split into what min guarantees and what is borrowed', () => {
  const lines = quotaLines(answer({ charged: [6, null], borrowed: [2, null], lent: [0, 0], min: [4, 4], max: [8, 8] }), 'root/a');
  expect(lines.map(({ id, values }) => [id, values])).toEqual([
    ['used', [4, null]],
    ['borrowed', [2, null]],
    ['lent', [0, 0]],
    ['min', [4, 4]],
    ['max', [8, 8]],
  ]);
});

test('without a max of its own there is no line for it', () => {
  const lines = quotaLines(answer({ charged: [0, 0], borrowed: [0, 0], lent: [0, 0], min: [4, 4], max: [null, null] }), 'root/a');
  expect(lines.map(({ id }) => id)).not.toContain('max');
});
