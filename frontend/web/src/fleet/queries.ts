/** What the fleet's pages ask the server, and how long an answer stays good when no news comes. */
import { queryOptions } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import type { Cluster, Job, Node, Page } from '../api/types.ts';

const SWEEP_MS = 30_000;

export const clustersQuery = queryOptions({
  queryKey: ['clusters', 'list'],
  queryFn: ({ signal }) => api.get<Page<Cluster>>('clusters/', { query: { page_size: 200 }, signal }),
  refetchInterval: SWEEP_MS,
});

export function nodesQuery(cluster: string) {
  return queryOptions({
    queryKey: ['clusters', 'nodes', cluster],
    queryFn: ({ signal }) =>
      api.get<Page<Node>>(`clusters/${encodeURIComponent(cluster)}/nodes/`, { query: { page_size: 200 }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

export const waitingQuery = queryOptions({
  queryKey: ['jobs', 'list', 'waiting'],
  queryFn: ({ signal }) => api.get<Page<Job>>('jobs/', { query: { state: 'Queued', page_size: 1 }, signal }),
  refetchInterval: SWEEP_MS,
});
