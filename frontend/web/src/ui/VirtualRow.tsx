/** The rows of a `VirtualTable`, and their boxes. */
import { Skeleton } from '@mantine/core';
import { memo, type ReactNode } from 'react';

import type { Column } from './DataTable.tsx';
import classes from './VirtualTable.module.css';

export function Awaited({ index, width }: { index: number; width: number }) {
  return (
    <tr aria-rowindex={index + 2}>
      <td colSpan={width}>
        <Skeleton height={10} width="60%" />
      </td>
    </tr>
  );
}

interface LineProps<Row> {
  index: number;
  row: Row;
  columns: Column<Row>[];
  label: string;
  on: boolean;
  onToggle: (row: Row, on: boolean) => void;
}

/** Rendered again only when its row, its box or the columns are others: a scroll leaves those in sight alone. */
export const Line = memo(function Line<Row>({ index, row, columns, label, on, onToggle }: LineProps<Row>) {
  return (
    <tr aria-rowindex={index + 2}>
      <td className={classes['box']}>
        <Box label={label} on={on} onToggle={(next) => onToggle(row, next)} />
      </td>
      {columns.map(({ id, cell, align }) => (
        <td key={id} data-align={align}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: LineProps<Row>) => ReactNode;

interface BoxProps {
  label: string;
  disabled?: boolean;
  on: boolean;
  some?: boolean;
  onToggle: (on: boolean) => void;
}

export function Box({ label, disabled = false, on, some = false, onToggle }: BoxProps) {
  return (
    <input
      type="checkbox"
      aria-label={label}
      disabled={disabled}
      checked={on}
      ref={(input) => {
        if (input) input.indeterminate = some && !on;
      }}
      onChange={({ currentTarget }) => onToggle(currentTarget.checked)}
    />
  );
}
