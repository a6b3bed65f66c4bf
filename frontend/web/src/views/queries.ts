/** Saved views of a list: the reader's own, and those that are shared with them. */
import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import type { components } from '../api/schema.d.ts';
import type { Page } from '../api/types.ts';
import { forgetViews, readViews } from './former.ts';

export type SavedView = components['schemas']['SavedView'];
export type ListName = 'jobs' | 'events' | 'audit';

export interface NewView {
  name: string;
  search: string;
  shared: boolean;
  namespace: string;
}

export function viewsQuery(list: ListName) {
  return queryOptions({
    queryKey: ['views', list],
    queryFn: async ({ signal }) => {
      await takeOver(list);
      return api.get<Page<SavedView>>('views/', { query: { list, page_size: 200 }, signal });
    },
  });
}

/** What this browser kept itself is saved at the server once; what the server refuses stays where it was. */
async function takeOver(list: ListName): Promise<void> {
  const former = readViews(list);
  if (former.length === 0) return;
  const saved = await Promise.allSettled(former.map(({ name, search }) => api.post('views/', { list, name: name.slice(0, 63), search })));
  if (saved.every(({ status }) => status === 'fulfilled')) forgetViews(list);
}

export function useSaveView(list: ListName, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (view: NewView) => api.post<SavedView>('views/', { list, ...view }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['views', list] });
      onDone();
    },
  });
}

export function useForgetView(list: ListName) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => api.delete(`views/${id}/`),
    onSuccess: () => client.invalidateQueries({ queryKey: ['views', list] }),
  });
}
