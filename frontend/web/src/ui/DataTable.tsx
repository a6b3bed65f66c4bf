/** A list as a real table: sortable headings, rows that stay put while data is fetched again. The server sorts. */
import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import type { ReactNode } from 'react';

import { SkeletonRows } from './SkeletonRows.tsx';
import { Term, type Word } from './Term.tsx';
import classes from './DataTable.module.css';

export interface Column<Row> {
  id: string;
  header: string;
  /** The glossary's word for it. */
  term?: Word;
  cell: (row: Row) => ReactNode;
  /** The server's name for this order; without it the column cannot be sorted. */
  sort?: string;
  align?: 'end';
  width?: string;
  /** Said to screen readers only: a column of buttons needs no visible heading. */
  quiet?: boolean;
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[];
  /** Undefined while nothing is known yet. */
  rows: Row[] | undefined;
  rowKey: (row: Row) => string;
  ordering?: string;
  onOrder?: (ordering: string) => void;
  stale?: boolean;
}

export function DataTable<Row>({ caption, columns, rows, rowKey, ordering, onOrder, stale = false }: Props<Row>) {
  return (
    <div className={classes['scroller']}>
      <table className={classes['table']} data-stale={stale} aria-busy={!rows}>
        <caption className="cv-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.id} column={column} ordering={ordering} onOrder={onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows === undefined && <SkeletonRows columns={columns.length} />}
          {rows?.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map(({ id, cell, align }) => (
                <td key={id} data-align={align}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface HeadingProps<Row> {
  column: Column<Row>;
  ordering: string | undefined;
  onOrder: ((ordering: string) => void) | undefined;
}

/** A heading that sorts, where the server can. */
export function Heading<Row>({ column, ordering, onOrder }: HeadingProps<Row>) {
  const { sort, header, term, align, width, quiet } = column;
  if (!sort || !onOrder) {
    return (
      <th scope="col" data-align={align} style={{ width }}>
        <span className={quiet ? 'cv-hidden' : undefined}>{term ? <Term word={term}>{header}</Term> : header}</span>
      </th>
    );
  }
  const direction = ordering === sort ? 'ascending' : ordering === `-${sort}` ? 'descending' : 'none';
  const Icon = { ascending: ArrowUp, descending: ArrowDown, none: ChevronsUpDown }[direction];
  return (
    <th scope="col" data-align={align} style={{ width }} aria-sort={direction}>
      <button
        type="button"
        className={classes['sort']}
        onClick={() => onOrder(direction === 'ascending' ? `-${sort}` : sort)}
      >
        {header}
        <Icon size={12} aria-hidden />
      </button>
    </th>
  );
}
