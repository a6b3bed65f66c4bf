import { expect, test } from 'vitest';

import { changedScope, EVERYTHING, readScope, withScope } from './scope.ts';

const NORTH = { ...EVERYTHING, cluster: 'north' };

test.each([
  ['/jobs', '/jobs?cluster=north'],
  ['/jobs?state=Queued', '/jobs?state=Queued&cluster=north'],
  ['/jobs?cluster=south', '/jobs?cluster=south'],
  ['/jobs?cluster=', '/jobs'],
  ['?tab=yaml', '?tab=yaml&cluster=north'],
])('a link to %s keeps the scope', (to, address) => {
  expect(withScope(to, NORTH)).toBe(address);
});

test('leaves a link alone when nothing is chosen', () => {
  expect(withScope('/jobs?state=Queued', EVERYTHING)).toBe('/jobs?state=Queued');
  expect(withScope('/jobs', EVERYTHING)).toBe('/jobs');
});

test('a change of scope starts at the first page and keeps the rest', () => {
  const next = changedScope(new URLSearchParams('search=a&page=3&queue=root/a'), { queue: '', namespace: 'vision' });
  expect(next.toString()).toBe('search=a&namespace=vision');
  expect(readScope(next)).toEqual({ ...EVERYTHING, namespace: 'vision' });
});
