/** What the reports ask the server, and when again: what is over does not change. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import { Problem } from '../api/problem.ts';
import type { AccountingAnswer, Goodput, Lending, Series, Shares, Waits } from '../api/types.ts';
import { againAfter, type Bounds, boundsOf, type Chosen, heldBounds, stepsOf } from './period.ts';

export const OWNERS = ['team', 'user', 'model', 'queue', 'cluster', 'month'] as const;
export const WAITERS = ['queue', 'reason', 'team', 'model'] as const;
export const LOSERS = ['class', 'node', 'job', 'cluster', 'model', 'team', 'queue'] as const;

export type Owner = (typeof OWNERS)[number];
export type Waiter = (typeof WAITERS)[number];
export type Loser = (typeof LOSERS)[number];

/** Where a report is, as a file for a spreadsheet or for a program. */
export function filePath(report: string, chosen: Chosen, by: string, form: 'csv' | 'json', bounds: Bounds = boundsOf(chosen, Date.now())): string {
  return `/api/v1/${report}/?${new URLSearchParams({ ...(by ? { by } : {}), ...bounds, form })}`;
}

const again = (chosen: Chosen) => () => againAfter(boundsOf(chosen, Date.now()), Date.now());

function report<Answer>(name: string, chosen: Chosen, by?: string) {
  return queryOptions({
    queryKey: ['series', name, by, chosen],
    queryFn: ({ signal }) => api.get<Answer>(`${name}/`, { query: { by, ...boundsOf(chosen, Date.now()) }, signal }),
    refetchInterval: again(chosen),
    placeholderData: keepPreviousData,
  });
}

export const accountingQuery = (chosen: Chosen, by: Owner) => report<AccountingAnswer>('accounting', chosen, by);
export const waitsQuery = (chosen: Chosen, by: Waiter) => report<Waits>('waits', chosen, by);
export const lendingQuery = (chosen: Chosen) => report<Lending>('lending', chosen);

/** Of the part of the period of which use is kept. Where it ends before, the server's refusal says what is possible. */
export function sharesQuery(chosen: Chosen) {
  return queryOptions({
    queryKey: ['series', 'shares', undefined, chosen],
    queryFn: async ({ signal }): Promise<Shares & { bounds: Bounds }> => {
      const bounds = boundsOf(chosen, Date.now());
      const ask = (query: Partial<Bounds>) => api.get<Shares>('shares/', { query: { ...query }, signal });
      try {
        return { ...(await ask(bounds)), bounds };
      } catch (error) {
        if (!(error instanceof Problem && error.fields.some(({ field }) => field === 'from'))) throw error;
        const held = heldBounds(bounds, (await ask({})).earliest);
        if (!held) throw error;
        return { ...(await ask(held)), bounds: held };
      }
    },
    refetchInterval: again(chosen),
    placeholderData: keepPreviousData,
  });
}
export const goodputQuery = (chosen: Chosen, by: Loser | 'fleet') => report<Goodput>('goodput', chosen, by);

/** GPUs by queue or model over time, in the finest step in which all of them fit into one answer. */
export function allocationQuery(chosen: Chosen, by: 'queue' | 'model') {
  return queryOptions({
    queryKey: ['series', 'allocation', by, chosen],
    queryFn: async ({ signal }) => {
      const metric = by === 'queue' ? 'used,held' : 'used';
      const ask = (step: number) => api.get<Series>('series/', { query: { metric, by, step, ...boundsOf(chosen, Date.now()) }, signal });
      const [finest = 60, coarser] = stepsOf(chosen);
      const answer = await ask(finest);
      return answer.is_cut && coarser ? ask(coarser) : answer;
    },
    refetchInterval: again(chosen),
    placeholderData: keepPreviousData,
  });
}
