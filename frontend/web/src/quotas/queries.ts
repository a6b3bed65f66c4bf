/** Queries and mutations of the quota page. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import type {
  Page,
  QuotaChange,
  QuotaPreview,
  QuotaRevision,
  QuotaRevisionDetail,
  QuotaSaved,
  QuotaTree,
} from '../api/types.ts';

const SWEEP_MS = 30_000;

export const treeQuery = queryOptions({
  queryKey: ['quotas', 'tree'],
  queryFn: ({ signal }) => api.get<QuotaTree>('quota/tree/', { signal }),
  refetchInterval: SWEEP_MS,
});

export function historyQuery(page: number) {
  return queryOptions({
    queryKey: ['quotas', 'history', page],
    queryFn: ({ signal }) => api.get<Page<QuotaRevision>>('quota/tree/history/', { query: { page, page_size: 10 }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function generationQuery(generation: number) {
  return queryOptions({
    queryKey: ['quotas', 'generation', generation],
    queryFn: ({ signal }) => api.get<QuotaRevisionDetail>(`quota/tree/history/${generation}/`, { signal }),
    staleTime: Infinity,
  });
}

/** Asked again for every draft; the tree's generation is part of the question. */
export function previewQuery(generation: number, changes: QuotaChange[]) {
  return queryOptions({
    queryKey: ['quotas', 'preview', generation, changes],
    queryFn: () => api.post<QuotaPreview>('quota/tree/preview/', { changes, simulate: true }),
    enabled: changes.length > 0,
    placeholderData: keepPreviousData,
  });
}

function useQuotaMutation<Given, Answer>(run: (given: Given) => Promise<Answer>, onDone: (answer: Answer, given: Given) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: async (answer, given) => {
      await refetch(client, 'quotas');
      onDone(answer, given);
    },
  });
}

export interface Saving {
  generation: number;
  changes: QuotaChange[];
  comment: string;
}

export function useSave(onDone: (saved: QuotaSaved, sent: Saving) => void) {
  return useQuotaMutation((body: Saving) => api.patch<QuotaSaved>('quota/tree/', body), onDone);
}

export function useRevert(onDone: (saved: QuotaSaved) => void) {
  const run = (body: { to: number; generation: number; comment: string }) => api.post<QuotaSaved>('quota/tree/revert/', body);
  return useQuotaMutation(run, onDone);
}

export function useCreate() {
  const run = (manifest: Record<string, unknown>) => api.put<QuotaSaved>('quota/tree/', { manifest });
  return useQuotaMutation(run, () => undefined);
}

/** A whole tree from a file. */
export function useReplace(onDone: (saved: QuotaSaved) => void) {
  const run = (body: { yaml: string; generation?: number; comment: string }) => api.put<QuotaSaved>('quota/tree/', body);
  return useQuotaMutation(run, onDone);
}

export type QueueVerb = 'hold' | 'drain' | 'stop' | 'open';

export function useQueueVerb(name: string, verb: QueueVerb, onDone: () => void) {
  return useQuotaMutation((comment: string) => api.post(`queues/${name}/${verb}/`, { comment }), onDone);
}
