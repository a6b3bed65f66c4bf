import { expect, test } from 'vitest';

import type { NodeGpus } from '../api/types.ts';
import { hitAt, layoutOf, placeOf } from './mapLayout.ts';

const node = (name: string, gpus: number): NodeGpus => ({
  name, model: '', domain: '', ready: true, unschedulable: false, gpus, requested: 0, pods: [], holds: [],
});

test('nodes stand in lines, and the GPU under a point is found', () => {
  const { blocks, height } = layoutOf([node('a', 8), node('b', 8), node('c', 16), node('d', 2)], 'job', 230);
  expect(blocks.map(({ x, y }) => [x, y])).toEqual([[0, 0], [112, 0], [0, 21], [112, 21]]);
  expect(height).toBe(47);
  for (const block of blocks) {
    block.cells.forEach((cell, i) => {
      const [x, y] = placeOf(block, i);
      expect(hitAt(blocks, x + 1, y + 1)).toEqual({ block, cell });
    });
  }
  expect(hitAt(blocks, 108, 5)).toBeNull();
});

test('a node wider than the canvas has a line of its own', () => {
  expect(layoutOf([node('a', 8), node('b', 8)], 'job', 50).blocks.map(({ y }) => y)).toEqual([0, 21]);
});
