/** The children of one node, with what they had used of late. Pure. */
import type { Shares } from '../api/types.ts';

type Row = Shares['results'][number];

export interface Share {
  key: string;
  label: string;
  weight: number;
  entitled: number | null;
  hours: number[];
  shares: (number | null)[];
}

export function parentsOf(rows: Row[]): string[] {
  return [...new Set(rows.map(({ node }) => node))];
}

/** As many as there is room for, the largest shares first; those beyond are one row, so that all add up. */
export function childrenOf(rows: Row[], parent: string, hidden: string, others: string, room: number): Share[] {
  const children = rows
    .filter((row) => row.node === parent)
    .map((row) => ({ key: row.path, label: row.path || hidden, weight: row.weight, entitled: row.entitled, hours: row.gpu_hours, shares: row.shares }))
    .sort((left, right) => (right.hours.at(-1) ?? 0) - (left.hours.at(-1) ?? 0));
  if (children.length <= room) return children;
  return [...children.slice(0, room - 1), children.slice(room - 1).reduce((sum, each) => ({ ...added(sum, each), key: '*', label: others }))];
}

function added(left: Share, right: Share): Share {
  const both = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b);
  return {
    ...left,
    weight: left.weight + right.weight,
    entitled: both(left.entitled, right.entitled),
    hours: left.hours.map((value, i) => value + (right.hours[i] ?? 0)),
    shares: left.shares.map((value, i) => both(value, right.shares[i] ?? null)),
  };
}
