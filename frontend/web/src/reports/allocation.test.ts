import { expect, test } from 'vitest';

import type { Series } from '../api/types.ts';
import { allocationLines } from './allocation.ts';

const answer = (series: [string, string, (number | null)[]][]): Series => ({
  by: 'queue', start: 0, step: 60, count: 2, is_cut: false,
  series: series.map(([metric, name, values]) => ({ metric, name, values })),
});

test('a queue counts where its jobs are, with what is held for them, the largest first', () => {
  const lines = allocationLines(
    answer([['used', 'root', [9, 9]], ['used', 'root/a', [1, 1]], ['used', 'root/b', [6, null]], ['held', 'root/b', [2, null]]]), (name) => name, 'others',
  );
  expect(lines.map(({ id, look, values }) => [id, look, values])).toEqual([
    ['root/b', 'c0', [8, null]],
    ['root/a', 'c1', [1, 1]],
  ]);
});

test('what there is no look for is one area, so that all of it adds up', () => {
  const names = Array.from({ length: 11 }, (_, i) => `q${String(i).padStart(2, '0')}`);
  const lines = allocationLines(answer(names.map((name) => ['used', name, [1, 2]])), (name) => name, 'others');
  expect(lines.map(({ label }) => label)).toEqual([...names.slice(0, 7), 'others']);
  expect(lines.at(-1)?.values).toEqual([4, 8]);
});
