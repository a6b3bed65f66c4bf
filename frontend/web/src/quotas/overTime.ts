/** The GPUs of one queue over time, as the bars of the tree show those of now. Pure. */
import type { Series } from '../api/types.ts';
import { combined, valuesOf } from '../series/answer.ts';
import type { Value } from '../ui/chart/data.ts';

interface QuotaLine {
  id: 'used' | 'borrowed' | 'lent' | 'min' | 'max';
  look: 'used' | 'borrowed' | 'lent' | 'min' | 'max';
  values: Value[];
  stacked?: boolean;
}

/** A queue that only the queues above it limit has no max of its own. */
export function quotaLines(answer: Series, path: string): QuotaLine[] {
  const of = (metric: string) => valuesOf(answer, metric, path);
  const borrowed = of('borrowed');
  const within = combined((all = 0, above = 0) => Math.max(0, all - above), of('charged'), borrowed);
  const lines: QuotaLine[] = [
    { id: 'used', look: 'used', values: within, stacked: true },
    { id: 'borrowed', look: 'borrowed', values: borrowed, stacked: true },
    { id: 'lent', look: 'lent', values: of('lent') },
    { id: 'min', look: 'min', values: of('min') },
    { id: 'max', look: 'max', values: of('max') },
  ];
  return lines.filter(({ id, values }) => id !== 'max' || values.some((value) => value !== null));
}
