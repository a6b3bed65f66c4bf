/** What a row of goodput cost, and what it was lost to. Pure. */
import type { GoodputRow } from '../api/types.ts';
import type { Part } from './Parts.tsx';

/** What GPU-time may become beside productive, and its look. */
export const LOSSES = [
  ['lost', 'lost'],
  ['unknown', 'preempted'],
  ['hung', 'hung'],
  ['restart', 'start'],
  ['waiting', 'waiting'],
  ['checkpoint', 'saving'],
] as const;

export type Loss = (typeof LOSSES)[number][0];

/** GPU-hours that were not productive. */
export function costOf({ gpu_hours }: GoodputRow): number {
  return LOSSES.reduce((sum, [name]) => sum + (gpu_hours[name] ?? 0), 0);
}

/** GPU-hours that jobs held, and those of them without progress. What they waited for is in neither: others had it. */
export function heldOf(row: GoodputRow): { held: number; withoutProgress: number } {
  const withoutProgress = costOf(row) - (row.gpu_hours['waiting'] ?? 0);
  return { held: withoutProgress + (row.gpu_hours['productive'] ?? 0), withoutProgress };
}

export function lossesOf({ gpu_hours }: GoodputRow, labelOf: (loss: Loss) => string): Part[] {
  return LOSSES.map(([name, look]) => ({ look, label: labelOf(name), value: gpu_hours[name] ?? 0 }));
}

/** The page that shows what the row is of; none for classes, users' groups, and jobs that are deleted. */
export function pageOf(by: string, name: string): string | undefined {
  const slash = name.indexOf('/');
  if (by === 'cluster' && name) return `/fleet/${encodeURIComponent(name)}`;
  if (by === 'node' && slash > 0) return `/fleet/${encodeURIComponent(name.slice(0, slash))}`;
  if (by === 'job' && slash > 0) return `/jobs?${new URLSearchParams({ namespace: name.slice(0, slash), search: name.slice(slash + 1).replace(/ \(.*\)$/, '') })}`;
  return undefined;
}
