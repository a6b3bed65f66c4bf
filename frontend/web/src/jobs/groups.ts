/** By what the list of jobs can be grouped: each is one of its filters too, so that a group is a list of its own. */
import type { TextFilter } from './filters.ts';

export const BY = ['state', 'kind', 'namespace', 'queue', 'user', 'cluster', 'policy', 'reason'] as const satisfies TextFilter[];

export type GroupBy = (typeof BY)[number];

export function readGroup(text: string | null): GroupBy | undefined {
  return BY.find((name) => name === text);
}
