import { expect, test } from 'vitest';

import type { Cluster } from '../api/types.ts';
import { totalsOf } from './totals.ts';

function cluster(name: string, state: Cluster['state'], gpus: number, requested: number): Cluster {
  const counted = { allocatable: gpus, requested, held: 0, free: gpus - requested };
  const times = { last_heartbeat: '2026-01-01T12:00:00Z', state_since: '2026-01-01T12:00:10Z' };
  return { name, state, gpus: counted, nodes: { total: 4, ready: 4 }, jobs: { running: 1, placed: 1 }, ...times } as unknown as Cluster;
}

test('what is on a cluster that does not answer stands apart, and nothing of it is free', () => {
  const totals = totalsOf([cluster('north', 'Unknown', 32, 30), cluster('south', 'Ready', 16, 14), cluster('spot', 'Ready', 12, 10)]);
  expect(totals.gpus).toEqual({ allocatable: 28, requested: 24, held: 0, free: 4 });
  expect(totals.allGpus).toBe(60);
  expect(totals.silent).toEqual([{ name: 'north', gpus: 32, since: '2026-01-01T12:00:00Z' }]);
  expect(totals.nodes).toEqual({ total: 12, ready: 8 });
  expect(totals.clusters).toEqual({ total: 3, ready: 2 });
  expect(totals.starting).toBe(2);
});

test('a cluster that answers and is not well is silent since it is not', () => {
  expect(totalsOf([cluster('north', 'NotReady', 8, 0)]).silent[0]?.since).toBe('2026-01-01T12:00:10Z');
});
