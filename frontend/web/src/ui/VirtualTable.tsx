/** A long list as a real table of which only the rows in sight exist: the server sorts, and is asked for what is in sight. */
import { useCallback, useLayoutEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { type Column, Heading } from './DataTable.tsx';
import table from './DataTable.module.css';
import { Awaited, Box, Line } from './VirtualRow.tsx';
import classes from './VirtualTable.module.css';

export const ROW_PX = 48;
const SPARE = 8;
const FIRST_SIGHT = 30;

export interface Range {
  first: number;
  /** The one after the last. */
  end: number;
}

export interface Selection<Row> {
  has: (row: Row) => boolean;
  toggle: (row: Row, on: boolean) => void;
  /** How one row's box is called. */
  label: (row: Row) => string;
  /** Disabled while there is no row that it could be for. */
  all: { label: string; disabled: boolean; on: boolean; some: boolean; toggle: (on: boolean) => void };
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[];
  /** Below so many pixels it scrolls sideways. */
  width?: number;
  /** Undefined while nothing is known yet. */
  count: number | undefined;
  /** Undefined while that row is on its way. */
  rowAt: (index: number) => Row | undefined;
  /** What a row is known by: when rows come before it, its open menu or dialog stays with it. */
  rowKey: (row: Row) => string;
  onRange: (range: Range) => void;
  ordering: string;
  onOrder: (ordering: string) => void;
  selection: Selection<Row>;
}

export function VirtualTable<Row>(props: Props<Row>) {
  const { caption, columns, width, count, rowAt, rowKey, ordering, onOrder, onRange, selection } = props;
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<Range>({ first: 0, end: FIRST_SIGHT });
  const look = () => {
    if (!box.current) return;
    const next = inSight(box.current.scrollTop, box.current.clientHeight);
    if (next.first === range.first && next.end === range.end) return;
    setRange(next);
    onRange(next);
  };
  useLayoutEffect(look);
  const toggle = useRef(selection.toggle);
  useLayoutEffect(() => {
    toggle.current = selection.toggle;
  });
  const onToggle = useCallback((row: Row, on: boolean) => toggle.current(row, on), []);
  const total = count ?? FIRST_SIGHT;
  const end = Math.min(range.end, total);
  const first = Math.min(range.first, end);
  const keys = new Set<string>();
  return (
    <div ref={box} className={classes['scroller']} onScroll={look} role="region" aria-label={t('list.scrolls', { caption })}>
      <table className={`${table['table']} ${classes['table']}`} style={{ minWidth: width }} aria-busy={count === undefined} aria-rowcount={total + 1}>
        <caption className="cv-hidden">{caption}</caption>
        <thead>
          <tr>
            <th scope="col" className={classes['box']}>
              <Box {...selection.all} onToggle={selection.all.toggle} />
            </th>
            {columns.map((column) => (
              <Heading key={column.id} column={column} ordering={ordering} onOrder={onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} />
          {Array.from({ length: end - first }, (_, place) => {
            const index = first + place;
            const row = rowAt(index);
            if (row === undefined) return <Awaited key={index} index={index} width={columns.length + 1} />;
            const box = { label: selection.label(row), on: selection.has(row) };
            const key = rowKey(row);
            // Between the answers of two pages a row may be on both.
            const known = keys.has(key);
            keys.add(key);
            return <Line key={known ? index : key} index={index} row={row} columns={columns} {...box} onToggle={onToggle} />;
          })}
          <Gap rows={total - end} />
        </tbody>
      </table>
    </div>
  );
}

/** The room that rows out of sight would take. */
function Gap({ rows }: { rows: number }) {
  return rows > 0 ? <tr aria-hidden className={classes['gap']} style={{ height: rows * ROW_PX }} /> : null;
}

/** In steps of many rows: most frames of a scroll then have nothing to render. */
function inSight(top: number, height: number): Range {
  const first = Math.max(0, Math.floor(top / ROW_PX) - SPARE);
  const end = Math.ceil((top + height) / ROW_PX) + SPARE;
  return { first: Math.floor(first / SPARE) * SPARE, end: Math.ceil(end / SPARE) * SPARE };
}
