import { expect, test } from 'vitest';

import { NO_VALUES, obstacleOf, valuesOf } from './orders.ts';

test.each([
  ['priority', { priority: ' -5 ' }, { priority: -5 }],
  ['priority', { priority: '1.5' }, null],
  ['move', { queue: 'root/a' }, { queue: 'root/a' }],
  ['move', {}, null],
  ['scale', { replicas: '0' }, { replicas: 0 }],
  ['scale', { replicas: '3', role: 'Worker' }, { replicas: 3, role: 'Worker' }],
  ['scale', { replicas: '-1' }, null],
  ['preempt', {}, {}],
] as const)('for %s %j sends %j', (action, values, sent) => {
  expect(valuesOf(action, { ...NO_VALUES, ...values })).toEqual(sent);
});

test.each([
  ['preempt', 'Queued', 'state'],
  ['preempt', 'Running', ''],
  ['move', 'Running', 'state'],
  ['move', 'Queued', ''],
  ['resubmit', 'Running', 'state'],
  ['resubmit', 'Failed', ''],
  ['priority', 'Succeeded', 'state'],
  ['scale', 'Queued', 'state'],
  ['scale', 'Running', 'size'],
] as const)('%s of a job that is %s: %j', (action, state, obstacle) => {
  expect(obstacleOf(action, { state, size: null, deleting_at: null })).toBe(obstacle);
  expect(obstacleOf(action, { state, size: null, deleting_at: '2026-01-01T00:00:00Z' })).toBe('state');
});
