/** Values over time as the server keeps them. They are asked for again as often as a step ends, a minute at most. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import type { GpuHoursAnswer, PastAttempts, Series } from '../api/types.ts';
import { type Range, SPANS } from './range.ts';

const LEAST_MS = 10_000;
const MOST_MS = 60_000;

export interface Asked {
  metric: string;
  by: 'fleet' | 'cluster' | 'queue' | 'team';
  name?: string;
}

export function seriesQuery(asked: Asked, range: Range) {
  const { seconds, step } = SPANS[range];
  return queryOptions({
    queryKey: ['series', asked, range],
    queryFn: ({ signal }) => {
      const from = new Date(Date.now() - seconds * 1000).toISOString();
      return api.get<Series>('series/', { query: { ...asked, from, step }, signal });
    },
    refetchInterval: Math.min(MOST_MS, Math.max(LEAST_MS, step * 1000)),
    placeholderData: keepPreviousData,
  });
}

export const OWNERS = ['team', 'user', 'queue', 'cluster', 'model'] as const;

export type Owner = (typeof OWNERS)[number];

/** Where the GPU-hours of the time until now are. */
export function hoursPath(by: Owner, range: Range, now: number, form: 'json' | 'csv'): string {
  const from = new Date(now - SPANS[range].seconds * 1000).toISOString();
  return `gpu-hours/?${new URLSearchParams({ by, from, form })}`;
}

export function hoursQuery(by: Owner, range: Range) {
  return queryOptions({
    queryKey: ['series', 'hours', by, range],
    queryFn: ({ signal }) => api.get<GpuHoursAnswer>(hoursPath(by, range, Date.now(), 'json'), { signal }),
    refetchInterval: MOST_MS,
    placeholderData: keepPreviousData,
  });
}

/** The attempts of one queue's or one cluster's jobs in the time until now. */
export function attemptsQuery(of: { queue: string } | { cluster: string }, range: Range) {
  return queryOptions({
    queryKey: ['series', 'attempts', of, range],
    queryFn: ({ signal }) => {
      const from = new Date(Date.now() - SPANS[range].seconds * 1000).toISOString();
      return api.get<PastAttempts>('attempts/', { query: { ...of, from }, signal });
    },
    refetchInterval: LEAST_MS,
    placeholderData: keepPreviousData,
  });
}
