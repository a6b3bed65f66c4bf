import { expect, test } from 'vitest';

import { DEFAULT, readColumns, writeColumns } from './columnNames.ts';

test('an address without columns, or with none that there is, shows the usual ones', () => {
  for (const text of [null, '', 'nonsense', '<script>']) expect(readColumns(text)).toEqual(DEFAULT);
});

test.each([[['age', 'user']], [[]], [DEFAULT]] as const)('reads back what it wrote: %j', (shown) => {
  expect([...readColumns(writeColumns(shown))].sort()).toEqual([...shown].sort());
});

test('keeps the address short, and the order of the table', () => {
  expect(writeColumns([...DEFAULT].reverse())).toBe('');
  expect(readColumns('age,user')).toEqual(['user', 'age']);
});
