import { expect, test } from 'vitest';

import { matrixOf, parentsOf } from './lending.ts';

const flow = (node: string, lender: string, borrower: string, gpu_hours: number) => ({ node, lender, borrower, gpu_hours });
const FLOWS = [flow('root/a', 'root/a/x', 'root/a', 1), flow('root', 'root/a', 'root/b', 1), flow('root', 'root', 'root/b', 5), flow('root', 'root/a', 'root/c', 2)];

test('the children of the root come first, and each table is of the children of one node', () => {
  expect(parentsOf(FLOWS)).toEqual(['root', 'root/a']);
  const matrix = matrixOf(FLOWS, 'root');
  expect([matrix.lenders, matrix.borrowers]).toEqual([['root', 'root/a'], ['root/b', 'root/c']]);
  expect([matrix.of('root/a', 'root/c'), matrix.of('root', 'root/c'), matrix.lent('root/a'), matrix.borrowed('root/b'), matrix.total, matrix.most]).toEqual([2, 0, 3, 6, 8, 5]);
});
