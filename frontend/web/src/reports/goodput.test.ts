import { expect, test } from 'vitest';

import { costOf, heldOf, pageOf } from './goodput.ts';

const row = {
  name: 'a',
  gpu_hours: { productive: 50, checkpoint: 1, lost: 2, unknown: 3, hung: 4, restart: 5, waiting: 6 },
  seconds: {},
  ettr: null,
  failures: 0,
  mtbf_hours: null,
};

test('all but productive time is what it cost', () => {
  expect(costOf(row)).toBe(21);
});

test('what jobs waited for is not among what they held', () => {
  expect(heldOf(row)).toEqual({ held: 65, withoutProgress: 15 });
});

test('a row leads to the page of what it is of', () => {
  expect(pageOf('node', 'north/gpu-7')).toBe('/fleet/north');
  expect(pageOf('job', 'vision/train (b2c5)')).toBe('/jobs?namespace=vision&search=train');
  expect(pageOf('job', 'b2c5')).toBeUndefined();
  expect(pageOf('class', 'infrastructure')).toBeUndefined();
});
