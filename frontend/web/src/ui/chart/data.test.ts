import { expect, test } from 'vitest';

import { alone, changes, isEmpty, latest, layersOf, type Line, target } from './data.ts';

const line = (id: string, values: Line['values'], stacked = true): Line => ({ id, label: id, look: 'used', values, stacked });

test('stacked lines add up, the highest first, and lines stand by themselves', () => {
  const layers = layersOf([line('a', [1, 2, null]), line('b', [10, null, 3]), line('max', [7, 7, 7], false)]);
  expect(layers.map(({ line: { id }, values }) => [id, values])).toEqual([
    ['b', [11, null, null]],
    ['a', [1, 2, null]],
    ['max', [7, 7, 7]],
  ]);
});

test('the latest place is the last where something is known', () => {
  expect(latest([line('a', [1, 2, null]), line('b', [1, null, null])], 3)).toBe(1);
  expect(latest([line('a', [null, null])], 2)).toBe(1);
  expect(isEmpty([line('a', [null, null])])).toBe(true);
  expect(isEmpty([line('a', [null, 0])])).toBe(false);
});

test('a table has the places where something changes or happened', () => {
  const marks = [{ at: 34, text: 'lost', tone: 'bad' as const }];
  expect(changes([line('a', [null, 1, 1, 1, 2])], [0, 10, 20, 30, 40], marks, 10)).toEqual([1, 3, 4]);
});

test('keys lead along the points and stop at the ends', () => {
  expect(target('ArrowRight', 3, 5)).toBe(4);
  expect(target('ArrowRight', 4, 5)).toBe(4);
  expect(target('ArrowLeft', 0, 5)).toBe(0);
  expect(target('PageDown', 50, 100)).toBe(40);
  expect(target('Home', 3, 5)).toBe(0);
  expect(target('End', 3, 5)).toBe(4);
  expect(target('a', 3, 5)).toBeUndefined();
});

test('a value between gaps is shown as a point, one beside another is a line', () => {
  expect(alone([null, 3, null, 4, 5, undefined, 0])).toEqual([1, 6]);
  expect(alone([7])).toEqual([0]);
  expect(alone([])).toEqual([]);
});
