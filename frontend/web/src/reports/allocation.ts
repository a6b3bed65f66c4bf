/** GPUs over time by queue or model, as areas that stand on each other. Pure. */
import type { Series } from '../api/types.ts';
import { valuesOf } from '../series/answer.ts';
import { CATEGORIES, type Line, type Value } from '../ui/chart/data.ts';

/** Those with the most first; what there is no look for is one area. A queue counts where its jobs are, not again above. */
export function allocationLines(answer: Series, labelOf: (name: string) => string, others: string): Line[] {
  const names = [...new Set(answer.series.map(({ name }) => name))];
  const leaves = names.filter((name) => !names.some((each) => each.startsWith(`${name}/`)));
  const lines = leaves
    .map((name) => ({ name, values: sum([valuesOf(answer, 'used', name), valuesOf(answer, 'held', name)]) }))
    .filter(({ values }) => values.some((value) => value !== null && value > 0))
    .sort((left, right) => total(right.values) - total(left.values) || left.name.localeCompare(right.name));
  const kept = lines.length > CATEGORIES.length ? lines.slice(0, CATEGORIES.length - 1) : lines;
  const rest = lines.slice(kept.length).map(({ values }) => values);
  return [
    ...kept.map(({ name, values }, i) => ({ id: name, label: labelOf(name), look: CATEGORIES[i] ?? 'c7', values, stacked: true })),
    ...(rest.length > 0 ? [{ id: '*', label: others, look: 'c7' as const, values: sum(rest), stacked: true }] : []),
  ];
}

function total(values: Value[]): number {
  return values.reduce<number>((all, value) => all + (value ?? 0), 0);
}

/** Moment by moment what is known; null where nothing is. */
function sum(lists: Value[][]): Value[] {
  return (lists[0] ?? []).map((_, i) => {
    const known = lists.map((list) => list[i] ?? null).filter((value) => value !== null);
    return known.length > 0 ? known.reduce((all, value) => all + value, 0) : null;
  });
}
