/** What the fleet's pages ask the server, and how long an answer stays fresh when no change arrives. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import type {
  Cluster, ClusterDetail, ClusterUses, Evictions, GpuMap, GpuModel, Groups, GroupUses, IdleJobs, Job, JobEvent, Node, NodeEvictions, NodeUses, Page, Queue, WhatIf,
} from '../api/types.ts';
import type { Scope } from '../scope/scope.ts';

const SWEEP_MS = 30_000;
const EVICTIONS_MS = 5_000;

export const clustersQuery = queryOptions({
  queryKey: ['clusters', 'list'],
  queryFn: ({ signal }) => api.get<Page<Cluster>>('clusters/', { query: { page_size: 200 }, signal }),
  refetchInterval: SWEEP_MS,
});

/** One cluster with the rights and the credentials that the fleet has there. */
export function clusterQuery(name: string) {
  return queryOptions({
    queryKey: ['clusters', 'list', 'detail', name],
    queryFn: ({ signal }) => api.get<ClusterDetail>(`clusters/${encodeURIComponent(name)}/`, { signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** The namespaces there are jobs of. */
export const namespacesQuery = queryOptions({
  queryKey: ['jobs', 'list', 'namespaces'],
  queryFn: ({ signal }) => api.get<Groups>('jobs/groups/', { query: { by: 'namespace' }, signal }),
  staleTime: SWEEP_MS,
});

/** The queues there are, as paths of the quota tree. */
export const queuesQuery = queryOptions({
  queryKey: ['quotas', 'queues'],
  queryFn: ({ signal }) => api.get<Page<Queue>>('queues/', { query: { page_size: 200 }, signal }),
  staleTime: SWEEP_MS,
});

interface NodesQuery {
  cluster: string;
  search: string;
  ordering: string;
  page: number;
  page_size: number;
}

export function nodesQuery(query: NodesQuery) {
  return queryOptions({
    queryKey: ['clusters', 'nodes', query],
    queryFn: ({ signal }) => api.get<Page<Node>>('nodes/', { query: { ...query }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SWEEP_MS,
  });
}

/** How many jobs of the scope are in this state. */
export function jobCountQuery(state: 'Queued' | 'Running', scope: Scope) {
  return queryOptions({
    queryKey: ['jobs', 'list', 'count', state, scope],
    queryFn: ({ signal }) => api.get<Page<Job>>('jobs/', { query: { ...scope, state, page_size: 1 }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

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

/** What each GPU of the cluster does, where that is measured. */
export function gpuUseQuery(cluster: string) {
  return queryOptions({
    queryKey: ['clusters', 'gpu-use', cluster],
    queryFn: ({ signal }) => api.get<NodeUses>(`gpu-usage/clusters/${encodeURIComponent(cluster)}/`, { signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** How the exporters of each cluster were read last. */
export const gpuReadingsQuery = queryOptions({
  queryKey: ['clusters', 'gpu-readings'],
  queryFn: ({ signal }) => api.get<ClusterUses>('gpu-usage/', { signal }),
  refetchInterval: SWEEP_MS,
});

/** What the GPUs of the running jobs of each team or queue do. It reads the whole fleet: asked again as readings come, and not as clusters change. */
export function gpuGroupsQuery(by: 'namespace' | 'queue') {
  return queryOptions({
    queryKey: ['gpu-usage', 'groups', by],
    queryFn: ({ signal }) => api.get<GroupUses>('gpu-usage/groups/', { query: { by }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** Running jobs that leave GPUs idle, asked as rarely. */
export const idleGpusQuery = queryOptions({
  queryKey: ['gpu-usage', 'idle'],
  queryFn: ({ signal }) => api.get<IdleJobs>('gpu-usage/idle/', { signal }),
  refetchInterval: SWEEP_MS,
});

/** Why jobs wait, the most frequent reason first. */
export function blockersQuery(scope: Scope) {
  return queryOptions({
    queryKey: ['jobs', 'list', 'blockers', scope],
    queryFn: ({ signal }) => api.get<Groups>('jobs/groups/', { query: { ...scope, by: 'reason', state: 'Queued' }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** Jobs on their way from one cluster to another, or out of one. */
export function movesQuery(scope: Scope) {
  return queryOptions({
    queryKey: ['jobs', 'list', 'moves', scope],
    queryFn: ({ signal }) =>
      api.get<Page<Job>>(`jobs/?state=Moving&state=Reclaiming&state=Backoff&page_size=6&${new URLSearchParams(scope)}`, { signal }),
    refetchInterval: SWEEP_MS,
  });
}

export function tickerQuery(scope: Scope) {
  return queryOptions({
    queryKey: ['events', 'ticker', scope],
    queryFn: ({ signal }) => api.get<Page<JobEvent>>('events/', { query: { ...scope, page_size: 5 }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** What the next cycle would do if this cluster were drained. */
export function drainQuery(cluster: string) {
  return queryOptions({
    queryKey: ['whatif', 'drain', cluster],
    queryFn: () => api.post<WhatIf>('whatif/', { drain_cluster: cluster }),
    staleTime: 0,
    retry: false,
  });
}

/** What the next cycle would do if this node were drained. */
export function nodeDrainQuery(cluster: string, node: string) {
  return queryOptions({
    queryKey: ['whatif', 'drain', cluster, node],
    queryFn: () => api.post<WhatIf>('whatif/', { drain_node: { cluster, node } }),
    staleTime: 0,
    retry: false,
  });
}

export function nodeQuery(cluster: string, node: string) {
  return queryOptions({
    queryKey: ['clusters', 'nodes', 'one', cluster, node],
    queryFn: ({ signal }) => api.get<Page<Node>>('nodes/', { query: { cluster, name: node }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** Which jobs have pods on the node, and whether they leave it. */
export function nodeEvictionsQuery(cluster: string, node: string) {
  return queryOptions({
    queryKey: ['clusters', 'list', 'evictions', cluster, node],
    queryFn: ({ signal }) => api.get<NodeEvictions>(`${nodePath(cluster, node)}evictions/`, { signal }),
    refetchInterval: EVICTIONS_MS,
  });
}

export function nodePath(cluster: string, node: string): string {
  return `clusters/${encodeURIComponent(cluster)}/nodes/${encodeURIComponent(node)}/`;
}

/** How many jobs have to leave the cluster yet, and how fast they do. */
export function evictionsQuery(cluster: string) {
  return queryOptions({
    queryKey: ['clusters', 'list', 'evictions', cluster],
    queryFn: ({ signal }) => api.get<Evictions>(`clusters/${encodeURIComponent(cluster)}/evictions/`, { signal }),
    refetchInterval: EVICTIONS_MS,
  });
}
