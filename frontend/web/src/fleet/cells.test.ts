import { expect, test } from 'vitest';

import type { MeasuredGpu, NodeGpus, PodOnNode } from '../api/types.ts';
import { byDomain, type Cell, cellsOf, largestGangs, legendOf, REST } from './cells.ts';
import { numbersOf, withUse } from './measured.ts';

const pod = (id: string, gpus: number): PodOnNode => ({
  id, kind: 'Job', namespace: 'vision', name: id, queue: 'root/vision', role: 'Worker', index: 0, gpus,
});
const node = (gpus: number, requested: number, pods: PodOnNode[] = [], more: Partial<NodeGpus> = {}): NodeGpus => ({
  name: 'n', model: '', domain: 'a', ready: true, unschedulable: false, gpus, requested, pods, holds: [], ...more,
});
const looks = (shown: NodeGpus) => cellsOf(shown, 'job').map(({ look }) => look[0]).join('');

test('a node has its pods, then strangers, then what is held, then what is free', () => {
  expect(looks(node(8, 5, [pod('a', 2), pod('b', 1)]))).toBe('pppssfff');
  expect(looks(node(8, 3, [pod('a', 2)], { holds: [pod('b', 2)] }))).toBe('ppshhfff');
  expect(looks(node(2, 4, [pod('a', 4)]))).toBe('pp');
  expect(looks(node(2, 2, [pod('a', 2)], { holds: [pod('b', 9)] }))).toBe('pp');
  expect(looks(node(2, 0, [], { ready: false }))).toBe('oo');
});

test('a pod whose job the reader may not see is a stranger', () => {
  expect(looks(node(2, 1, [pod('', 1)]))).toBe('sf');
});

test('cells are coloured by what is asked', () => {
  const [cell] = cellsOf(node(1, 1, [pod('a', 1)]), 'queue');
  expect(cell!.key).toBe('root/vision');
  expect(cellsOf(node(2, 1, [pod('a', 1)]), 'fragments')[1]!.key).toBe('fragment');
});

test('the legend names the largest first, ten of them in colours of their own', () => {
  const cells = Array.from({ length: 14 }, (_, i) => cellsOf(node(20, 14, [pod(`job-${String(i)}`, 14 - i)]), 'job')).flat();
  const legend = legendOf(cells, 'job');
  expect(legend.map(({ gpus }) => gpus).slice(0, 3)).toEqual([14, 13, 12]);
  expect(new Set(legend.slice(0, 10).map(({ hue }) => hue)).size).toBe(10);
  expect(legend.slice(10).map(({ hue }) => hue)).toEqual([REST, REST, REST, REST]);
  const own = legend.at(0)!;
  expect(legendOf(cells.filter(({ key }: Cell) => key === own.key), 'job')).toMatchObject([{ label: 'vision/job-0', gpus: 14 }]);
});

test('says how large a gang fits now, node by node', () => {
  const nodes = [node(8, 1), node(8, 8), node(8, 0, [], { unschedulable: true })];
  expect(largestGangs(nodes)).toEqual([
    { size: 1, pods: 7 },
    { size: 2, pods: 3 },
    { size: 4, pods: 1 },
    { size: 8, pods: 0 },
  ]);
  expect(largestGangs([node(8, 0, [], { holds: [pod('a', 6)] })])[0]).toEqual({ size: 1, pods: 2 });
});

test('nodes stand under their switch', () => {
  expect(byDomain([node(1, 0), node(1, 0, [], { domain: 'b' }), node(1, 0)]).map(({ nodes }) => nodes.length)).toEqual([2, 1]);
});

test('by utilisation a GPU is as busy as it was measured, idle only where it is allocated, and unknown without a reading', () => {
  const gpu = (utilization: number | null, id = '', idle_since: string | null = null): MeasuredGpu => ({
    gpu: '0', uuid: '', model: '', utilization, memory_used: null, memory_total: null, power: 300.4, temperature: null,
    idle_since, id, namespace: id && 'vision', name: id, pod: '',
  });
  const all = [gpu(90, 'a'), gpu(60, 'a'), gpu(10, 'a'), gpu(2, 'a', '2026-01-01T00:00:00Z'), gpu(1, '', '2026-01-01T00:00:00Z'), gpu(0), gpu(null)];
  const gpus = all.map((each, i) => ({ ...each, gpu: String(i) }));
  const [measured] = withUse([node(8, 5)], [{ node: 'n', at: '', gpus }], 5);
  const cells = cellsOf(measured!, 'use');
  expect(cells.map(({ look, key }) => key || look)).toEqual(['high', 'middle', 'low', 'idle', 'idle', 'free', 'unknown', 'unknown']);
  expect(legendOf(cells, 'use')).toEqual([]);
  expect(cellsOf(node(2, 0, [], { ready: false }), 'use').map(({ look }) => look)).toEqual(['off', 'off']);
  expect(numbersOf(gpus[0]!)).toEqual({ percent: '90', watts: '300', degrees: '–' });
  const use = (shown: NodeGpus, readings: MeasuredGpu[]) =>
    cellsOf(withUse([shown], [{ node: 'n', at: '', gpus: readings }], 5)[0]!, 'use').map(({ look, key }) => key || look);
  // An exporter that does not say who has a GPU: no more are free than the node has left.
  const still = [gpu(3), gpu(0)].map((each, i) => ({ ...each, gpu: String(i) }));
  expect(use(node(2, 2), still)).toEqual(['low', 'low']);
  expect(use(node(2, 1), still)).toEqual(['low', 'free']);
  expect(use(node(2, 0), [{ ...gpu(90), gpu: '1' }])).toEqual(['unknown', 'high']);
  expect(use(node(2, 2), [gpu(null), { ...gpu(90), gpu: '0/1' }, { ...gpu(50), gpu: '0/2' }])).toEqual(['high', 'middle']);
});

test('nothing is said of the use of a GPU before it is known up to which percent one is idle', () => {
  const gpu = { gpu: '0', uuid: '', model: '', utilization: 3, memory_used: null, memory_total: null, power: null, temperature: null } as const;
  const uses = [{ node: 'n', at: '', gpus: [{ ...gpu, idle_since: null, id: '', namespace: '', name: '', pod: '' }] }];
  const shown = (percent: number | undefined) => cellsOf(withUse([node(1, 0)], uses, percent)[0]!, 'use').map(({ look }) => look);
  expect([shown(undefined), shown(5), shown(0)]).toEqual([['unknown'], ['free'], ['use']]);
});
