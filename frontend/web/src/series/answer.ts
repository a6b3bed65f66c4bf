/** What an answer of values over time says: the times, and the values of one metric. Pure. */
import type { Series } from '../api/types.ts';
import type { Value } from '../ui/chart/data.ts';

export function timesOf({ start, step, count }: Series): number[] {
  return Array.from({ length: count }, (_, i) => start + i * step);
}

export function valuesOf({ series, count }: Series, metric: string, name = ''): Value[] {
  return series.find((each) => each.metric === metric && each.name === name)?.values ?? new Array<Value>(count).fill(null);
}

/** Value by value; null where one of them is not known. */
export function combined(merge: (...values: number[]) => number, ...lists: Value[][]): Value[] {
  return (lists[0] ?? []).map((_, i) => {
    const values = lists.map((list) => list[i] ?? null);
    return values.every((value) => value !== null) ? merge(...values) : null;
  });
}
