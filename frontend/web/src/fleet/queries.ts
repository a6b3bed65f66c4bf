/** What the fleet's pages ask the server, and how long an answer stays good when no news comes. */
import { queryOptions } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import type { Cluster, GpuMap, GpuModel, Groups, Job, JobEvent, Node, Page, WhatIf } from '../api/types.ts';

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

export const gpuModelsQuery = queryOptions({
  queryKey: ['clusters', 'gpus'],
  queryFn: ({ signal }) => api.get<{ results: GpuModel[] }>('gpus/', { signal }),
  refetchInterval: SWEEP_MS,
});

export function gpuMapQuery(cluster: string) {
  return queryOptions({
    queryKey: ['clusters', 'list', 'gpus', cluster],
    queryFn: ({ signal }) => api.get<GpuMap>(`gpus/${encodeURIComponent(cluster)}/`, { signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** Why jobs wait, the most frequent reason first. */
export const blockersQuery = queryOptions({
  queryKey: ['jobs', 'list', 'blockers'],
  queryFn: ({ signal }) => api.get<Groups>('jobs/groups/', { query: { by: 'reason', state: 'Queued' }, signal }),
  refetchInterval: SWEEP_MS,
});

/** Jobs on their way from one cluster to another, or out of one. */
export const movesQuery = queryOptions({
  queryKey: ['jobs', 'list', 'moves'],
  queryFn: ({ signal }) =>
    api.get<Page<Job>>('jobs/?state=Moving&state=Reclaiming&state=Backoff', { signal }).then((page) => ({
      ...page,
      results: page.results.slice(0, MOVES),
    })),
  refetchInterval: SWEEP_MS,
});

const MOVES = 6;

export const tickerQuery = queryOptions({
  queryKey: ['events', 'ticker'],
  queryFn: ({ signal }) => api.get<Page<JobEvent>>('events/', { query: { page_size: 5 }, signal }),
  refetchInterval: SWEEP_MS,
});

/** What the next cycle would do without this cluster. */
export function lossQuery(cluster: string) {
  return queryOptions({
    queryKey: ['whatif', 'lose', cluster],
    queryFn: () => api.post<WhatIf>('whatif/', { lose_cluster: cluster }),
    staleTime: 0,
    retry: false,
  });
}
