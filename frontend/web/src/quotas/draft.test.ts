import { describe, expect, test } from 'vitest';

import type { QuotaChange, QuotaTree } from '../api/types.ts';
import { quantityOf, unitsOf } from './amounts.ts';
import { boundChange, differences, fieldsOf, overlaps, rebased, withChange } from './draft.ts';
import { drafted, find, flat, loaded } from './model.ts';
import { faultsOf, moveObstacle, neighbour } from './rules.ts';

const GPU = 'nvidia.com/gpu';
const gpus = (min: number | string, max: number | string) => ({ min: { [GPU]: min }, max: { [GPU]: max } });

function treeOf(speech = gpus(2, 6)): QuotaTree {
  const vision = { name: 'vision', ...gpus(4, 8), children: [{ name: 'night', namespaces: ['night'], ...gpus(1, 8) }] };
  const root = { ...gpus(8, 8), children: [vision, { name: 'speech', ...speech }] };
  return {
    name: 'elasticquotatree',
    uid: '',
    generation: 1,
    resource_version: 1,
    created_at: '',
    changed_by: 'grace',
    manifest: { spec: { root } },
    warnings: [],
    nodes: [],
    outside_jobs: 'Wait',
    outside: { running: 0, waiting: 0, gpus: 0 },
  };
}

const edit = (path: string, bound: 'min' | 'max', value: string | null): QuotaChange => ({
  op: 'edit',
  path,
  set: { [bound]: { [GPU]: value } },
});
const move: QuotaChange = { op: 'move', path: 'root/vision/night', parent: 'root' };

test.each([
  ['cpu', '1500m', 1500],
  ['cpu', '2', 2000],
  ['memory', '4Gi', 4 * 2 ** 30],
  ['memory', '1.5Gi', 1.5 * 2 ** 30],
  [GPU, '8', 8],
  [GPU, '500m', null],
  [GPU, 'eight', null],
  [GPU, '', null],
])('%s %s is %s whole units', (resource, text, units) => {
  expect(unitsOf(resource, text)).toBe(units);
});

test.each([
  ['cpu', 1500],
  ['cpu', 0],
  ['memory', 3 * 2 ** 30],
  ['memory', 1000],
  [GPU, 12],
])('%s %s is written so that it reads back the same', (resource, units) => {
  expect(unitsOf(resource, quantityOf(resource, units))).toBe(units);
});

describe('a draft', () => {
  test('keeps the last of many edits of one number', () => {
    const changes = ['3', '4', '5'].reduce((now: QuotaChange[], value) => withChange(now, edit('root/speech', 'min', value)), []);
    expect(changes).toEqual([edit('root/speech', 'min', '5')]);
    expect(withChange(changes, edit('root/speech', 'max', '7'))).toHaveLength(2);
  });

  test('knows a quota that was moved and edited by where it was', () => {
    const root = drafted(treeOf(), [move, edit('root/night', 'max', '2')]);
    expect(find(root, 'root/night')).toMatchObject({ origin: 'root/vision/night', max: { [GPU]: '2' }, depth: 1 });
    expect(flat(root).map(({ path }) => path)).toEqual(['root', 'root/vision', 'root/speech', 'root/night']);
  });

  test('tells each difference once, and nothing of what is as it was', () => {
    expect(differences(treeOf(), [move, edit('root/speech', 'min', '3'), edit('root/speech', 'max', '6')])).toEqual([
      { path: 'root/speech', field: `min ${GPU}`, before: '2', after: '3' },
      { path: 'root/night', field: '', before: 'root/vision/night', after: 'root/night' },
    ]);
  });

  test('does not tell of those that are carried along', () => {
    const changes: QuotaChange[] = [{ op: 'move', path: 'root/vision', parent: 'root/speech' }];
    expect(differences(treeOf(), changes).map(({ after }) => after)).toEqual(['root/speech/vision']);
  });

  test('tells of new quotas and of those that go', () => {
    const add: QuotaChange = { op: 'add', parent: 'root', node: { name: 'new', ...gpus(0, '2') } };
    const found = differences(treeOf(), [add, { op: 'remove', path: 'root/vision' }]);
    expect(found.map(({ before, after }) => [before, after])).toEqual([
      ['root/vision', ''],
      ['root/vision/night', ''],
      ['', 'root/new'],
      ['', '0'],
      ['', '2'],
    ]);
  });

  test('sets min and max of the root at once', () => {
    const root = drafted(treeOf(), [boundChange(loaded(treeOf()), 'min', GPU, '9')]);
    expect([root.min, root.max]).toEqual([{ [GPU]: '9' }, { [GPU]: '9' }]);
  });

  test('goes onto a newer tree without what is gone, and says where both were', () => {
    const changes = [edit('root/speech', 'min', '3'), edit('root/gone', 'min', '1')];
    expect(rebased(treeOf(), changes)).toEqual({ kept: [changes[0]], lost: [changes[1]] });
    expect(overlaps(treeOf(), treeOf(gpus(1, 6)), changes)).toEqual([
      { path: 'root/speech', field: `min ${GPU}`, before: '2', after: '1' },
    ]);
  });
});

test('the differences of a generation are told field by field', () => {
  const found = fieldsOf({ path: 'root/speech', before: gpus(2, 6), after: gpus('2', '7') });
  expect(found).toEqual([{ path: 'root/speech', field: `max ${GPU}`, before: '6', after: '7' }]);
});

describe('the rules', () => {
  const codes = (...changes: QuotaChange[]) =>
    faultsOf(drafted(treeOf(), changes)).map(({ path, bound, code }) => `${path} ${bound} ${code}`);

  test('have nothing against a valid tree', () => expect(codes()).toEqual([]));

  test.each([
    [edit('root/speech', 'min', '7'), 'root/speech min minOverMax'],
    [edit('root/speech', 'min', '5'), 'root min childrenOverMin'],
    [edit('root/speech', 'max', '9'), 'root/speech max overCeiling'],
    [edit('root/speech', 'max', null), 'root/speech min maxMissing'],
    [edit('root/speech', 'max', 'x'), 'root/speech max unreadable'],
    [edit('root', 'max', '9'), 'root max rootDiffers'],
  ])('find what is wrong with %j', (change, wanted) => {
    expect(codes(change)).toContain(wanted);
  });

  test('know where a quota may go', () => {
    const root = loaded(treeOf());
    expect(moveObstacle(root, 'root/vision', 'root/vision/night')).toBe('itself');
    expect(moveObstacle(root, 'root/vision', 'root')).toBe('here');
    expect(moveObstacle(root, 'root/vision', 'root/speech')).toBe('');
    expect(neighbour(root, 'root/speech', 'in')).toBe('root/vision');
    expect(neighbour(root, 'root/vision/night', 'out')).toBe('root');
    expect(neighbour(root, 'root/vision', 'out')).toBeUndefined();
  });
});
