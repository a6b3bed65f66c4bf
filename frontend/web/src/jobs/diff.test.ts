import { expect, test } from 'vitest';

import { diff, isSame } from './diff.ts';

const told = (before: string[], after: string[]) =>
  diff(before.join('\n'), after.join('\n')).map(({ mark, text }) => mark + text);

test('keeps what is alike and marks what is not', () => {
  expect(told(['a', 'b', 'c'], ['a', 'x', 'c', 'd'])).toEqual([' a', '-b', '+x', ' c', '+d']);
});

test('knows when nothing differs', () => {
  expect(isSame(diff('a\nb', 'a\nb'))).toBe(true);
  expect(isSame(diff('a\nb', 'a'))).toBe(false);
});

test('gives both texts back', () => {
  const pick = (size: number, seed: number) => Array.from({ length: size }, (_, i) => 'abc'[(i * seed + seed) % 3]!);
  for (const [n, m] of [[0, 4], [7, 5], [9, 9]] as const) {
    const [before, after] = [pick(n, 2), pick(m, 5)];
    const lines = diff(before.join('\n'), after.join('\n'));
    const side = (gone: string) => lines.filter(({ mark }) => mark !== gone).map(({ text }) => text).join('\n');
    expect([side('+'), side('-')]).toEqual([before.join('\n'), after.join('\n')]);
  }
});
