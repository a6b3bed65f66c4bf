import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';

import { DataTable, type Column } from './DataTable.tsx';

interface Row {
  name: string;
}

const columns: Column<Row>[] = [
  { id: 'name', header: 'Name', sort: 'name', cell: ({ name }) => name },
  { id: 'more', header: 'More', cell: () => '…' },
];

function show(rows: Row[] | undefined, ordering?: string) {
  const onOrder = vi.fn();
  render(
    <MantineProvider withCssVariables={false}>
      <DataTable
        caption="Rows"
        columns={columns}
        rows={rows}
        rowKey={({ name }) => name}
        onOrder={onOrder}
        {...(ordering === undefined ? {} : { ordering })}
      />
    </MantineProvider>,
  );
  return onOrder;
}

afterEach(cleanup);

test('shows a row for each, under headings', () => {
  show([{ name: 'north' }, { name: 'south' }]);
  expect(screen.getAllByRole('row')).toHaveLength(3);
  expect(screen.getByRole('table', { name: 'Rows' }).getAttribute('aria-busy')).toBe('false');
});

test('says that it is busy until it knows its rows', () => {
  show(undefined);
  expect(screen.getByRole('table', { name: 'Rows' }).getAttribute('aria-busy')).toBe('true');
});

test.each([
  [undefined, 'name'],
  ['name', '-name'],
  ['-name', 'name'],
])('ordered by %s, a click on the heading asks for %s', (ordering, asked) => {
  const onOrder = show([{ name: 'north' }], ordering);
  fireEvent.click(screen.getByRole('button', { name: 'Name' }));
  expect(onOrder).toHaveBeenCalledExactlyOnceWith(asked);
});

test('says how it is ordered', () => {
  show([{ name: 'north' }], '-name');
  expect(screen.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('descending');
});
