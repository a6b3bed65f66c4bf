import { expect, test } from 'vitest';

import { costOf, pageOf } from './goodput.ts';

test('all but productive time is what it cost', () => {
  const gpu_hours = { productive: 50, checkpoint: 1, lost: 2, unknown: 3, hung: 4, restart: 5, waiting: 6 };
  expect(costOf({ name: 'a', gpu_hours, seconds: {}, ettr: null, failures: 0, mtbf_hours: null })).toBe(21);
});

test('a row leads to the page of what it is of', () => {
  expect(pageOf('node', 'north/gpu-7')).toBe('/fleet/north');
  expect(pageOf('job', 'vision/train (b2c5)')).toBe('/jobs?namespace=vision&search=train');
  expect(pageOf('job', 'b2c5')).toBeUndefined();
  expect(pageOf('class', 'infrastructure')).toBeUndefined();
});
