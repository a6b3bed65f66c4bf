import { expect, test } from 'vitest';

import type { JobDetail, Pod } from '../api/types.ts';
import { copiesOf } from './relations.ts';

const pod = (name: string, cluster: string, node: string, attempt = 1) => ({ name, cluster, node, attempt }) as Pod;
const job = (part: Partial<JobDetail>) => ({ state: 'Running', cluster: 'north', attempt: 1, shares: [], other_copies: [], ...part }) as Pick<JobDetail, 'state' | 'cluster' | 'attempt' | 'shares' | 'other_copies'>;
const shown = (part: Partial<JobDetail>, pods: Pod[]) =>
  copiesOf(job(part), pods).map(({ cluster, nodes }) => [cluster, nodes.map((node) => `${node.name}: ${node.pods.map(({ name }) => name).join(' ')}`)]);

test('a copy has its pods by node, and no pod of another attempt', () => {
  const pods = [pod('a', 'north', 'n0'), pod('b', 'north', 'n1'), pod('c', 'north', 'n0'), pod('old', 'north', 'n0', 7)];
  expect(shown({}, pods)).toEqual([['north', ['n0: a c', 'n1: b']]]);
});

test('a job that was not sent has no copy', () => {
  expect(shown({ state: 'Placed' }, [])).toEqual([]);
  expect(shown({ state: 'Queued', cluster: null }, [])).toEqual([]);
});

test('a divided job has one for each share that is not lost, and earlier ones that may run yet', () => {
  const shares = [
    { cluster: 'north', attempt: 1, replicas: 1, completions: 0, state: 'Running' },
    { cluster: 'south', attempt: 2, replicas: 1, completions: 0, state: 'Lost' },
  ] as const;
  const other = { code: 'CopyUnreachable', message: '', attempt: 1, cluster: 'west', since: null, current: 2 } as const;
  expect(shown({ shares: [...shares], other_copies: [other] }, [pod('a', 'west', '')])).toEqual([
    ['north', []],
    ['west', [': a']],
  ]);
});
