/** What the submit page asks the server: what a file would do, and to do it. */
import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import type { Applied, ApplyPreview, KnownKinds, SchemaPlace } from '../api/types.ts';

export function previewQuery(text: string) {
  return queryOptions({
    queryKey: ['apply', 'preview', text],
    queryFn: ({ signal }) => api.postYaml<ApplyPreview>('apply/preview/', text, signal),
    enabled: text.trim() !== '',
    retry: false,
    gcTime: 60_000,
  });
}

export function useApply(onDone: (applied: Applied[]) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (text: string) => api.postYaml<{ results: Applied[] }>('apply/', text),
    onSuccess: ({ results }) => {
      void refetch(client, 'jobs');
      onDone(results);
    },
  });
}

/** Schemas change only with a release of the server. */
const KEPT = { staleTime: 'static', gcTime: Infinity } as const;

export const knownKindsQuery = queryOptions({
  queryKey: ['schemas'],
  queryFn: ({ signal }) => api.get<KnownKinds>('schemas/', { signal }),
  ...KEPT,
});

export function placeQuery(apiVersion: string, kind: string, path: readonly string[]) {
  return queryOptions({
    queryKey: ['schemas', apiVersion, kind, path],
    queryFn: ({ signal }) =>
      api.get<SchemaPlace>('schemas/fields/', { query: { api_version: apiVersion, kind, path }, signal }),
    ...KEPT,
  });
}
