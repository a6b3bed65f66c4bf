/** The utilisation of a job's GPUs as lines of a chart: each of them, or of many the lowest, the mean and the highest. Pure. */
import type { JobGpu, JobGpus } from '../api/types.ts';
import { CATEGORIES, type Line, type Value } from '../ui/chart/data.ts';

type Named = (name: 'lowest' | 'mean' | 'highest') => string;

export function timesOfHistory({ start, step, lines }: JobGpus['history']): number[] {
  return Array.from({ length: lines[0]?.values.length ?? 0 }, (_, i) => start + i * step);
}

/** More than eight lines would not be told apart. */
export function linesOf({ lines }: JobGpus['history'], named: (pod: string, gpu: string) => string, many: Named): Line[] {
  if (lines.length <= CATEGORIES.length) {
    return lines.map(({ node, gpu, pod, values }, i) => ({
      id: `${node}/${gpu}`, label: named(pod, gpu), look: CATEGORIES[i] ?? 'c7', values,
    }));
  }
  const each = (merge: (values: number[]) => number): Value[] =>
    (lines[0]?.values ?? []).map((_, i) => {
      const values = lines.map(({ values: all }) => all[i] ?? null).filter((value) => value !== null);
      return values.length > 0 ? merge(values) : null;
    });
  return [
    { id: 'highest', label: many('highest'), look: 'max', values: each((values) => Math.max(...values)) },
    { id: 'mean', label: many('mean'), look: 'used', values: each((values) => values.reduce((all, one) => all + one, 0) / values.length) },
    { id: 'lowest', label: many('lowest'), look: 'min', values: each((values) => Math.min(...values)) },
  ];
}

/** GPUs that are listed one by one. */
export const LISTED = 16;

/** The least used of many, which are worth a look; few in their own order. */
export function leastUsed(gpus: JobGpu[]): JobGpu[] {
  if (gpus.length <= LISTED) return gpus;
  const use = ({ utilization }: JobGpu) => utilization ?? Infinity;
  return [...gpus].sort((a, b) => (use(a) === use(b) ? 0 : use(a) - use(b))).slice(0, LISTED);
}
