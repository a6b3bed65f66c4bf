import { expect, test } from 'vitest';

import { bodyOf, fromHash, NOTHING, obstacleOf, toHash } from './suppose.ts';

const all = {
  cluster: 'north', what: 'drain', nodes: '4', nodesIn: 'south', quota: 'root/vision', resource: 'nvidia.com/gpu', min: '', max: '8', job: 'kind: Job\n# a & b = c',
} as const;

test('a link carries all that is supposed', () => {
  expect(fromHash(`#${toHash(all)}`)).toEqual(all);
  expect(toHash(NOTHING)).toBe('');
  expect(fromHash('#what=burn')).toEqual(NOTHING);
});

test('asks for what is chosen, and for nothing else', () => {
  expect(bodyOf(all)).toEqual({
    drain_cluster: 'north',
    add_nodes: { cluster: 'south', count: 4 },
    raise_quota: { path: 'root/vision', min: {}, max: { 'nvidia.com/gpu': '8' } },
    add_job: all.job,
  });
  expect(bodyOf({ ...NOTHING, cluster: 'north' })).toEqual({ lose_cluster: 'north' });
});

test.each([
  [{}, 'nothing'],
  [{ nodes: '2' }, 'halfNodes'],
  [{ quota: 'root' }, 'halfQuota'],
  [{ max: '2' }, 'halfQuota'],
  [{ job: ' \n' }, 'nothing'],
  [{ cluster: 'north' }, null],
])('of %j it says %s', (part, obstacle) => {
  expect(obstacleOf({ ...NOTHING, ...part })).toBe(obstacle);
});
