/** Queries and mutations of the jobs' pages. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import type { EndedPod, Job, JobDetail, JobEvent, JobGpus, Page, Pod } from '../api/types.ts';
import { type JobFilters, queryOf, searchOf } from './filters.ts';
import type { OrderName } from './orders.ts';
import type { Action } from './states.ts';
import type { Attempt, BulkDone, Copy, Explanation, Groups, Notice, QueueUnit, Timeline } from './types.ts';

const SWEEP_MS = 30_000;
/** How long a page of a list is kept that was scrolled past: the way back is short, and a list may be long. */
const OUT_OF_SIGHT_MS = 10_000;

/** One page of the jobs that match, from 1. */
export function jobsQuery(filters: JobFilters, page: number) {
  return queryOptions({
    queryKey: ['jobs', 'list', filters, page],
    queryFn: ({ signal }) => api.get<Page<Job>>('jobs/', { query: queryOf(filters, page), signal }),
    refetchInterval: SWEEP_MS,
    gcTime: OUT_OF_SIGHT_MS,
  });
}

/** How many of those that match there are of each value. */
export function groupsQuery(filters: JobFilters, by: string) {
  return queryOptions({
    queryKey: ['jobs', 'list', filters, 'groups', by],
    queryFn: ({ signal }) => api.get<Groups>(`jobs/groups/?by=${encodeURIComponent(by)}&${searchOf(filters)}`, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SWEEP_MS,
  });
}

/** One order for some jobs, or what it would do. */
export function order(action: OrderName, ids: string[], values: Record<string, string | number>, preview: boolean): Promise<BulkDone> {
  return api.post<BulkDone>('jobs/bulk/', { action, ids, preview, ...values });
}

export function jobQuery(id: string) {
  return queryOptions({
    queryKey: ['jobs', 'one', id],
    queryFn: ({ signal }) => api.get<JobDetail>(`jobs/${id}/`, { signal }),
    refetchInterval: SWEEP_MS,
  });
}

export function jobEventsQuery(id: string) {
  return queryOptions({
    queryKey: ['jobs', 'one', id, 'events'],
    queryFn: ({ signal }) => api.get<Page<JobEvent>>(`jobs/${id}/events/`, { query: { page_size: 200 }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

export function jobPodsQuery(id: string) {
  return queryOptions({
    queryKey: ['jobs', 'one', id, 'pods'],
    queryFn: ({ signal }) => api.get<Page<Pod>>(`jobs/${id}/pods/`, { query: { page_size: 200 }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** Pods that have ended, also those that are gone, whose logs are kept. */
export function endedPodsQuery(id: string) {
  return queryOptions({
    queryKey: ['jobs', 'one', id, 'ended-pods'],
    queryFn: ({ signal }) => api.get<Page<EndedPod>>(`jobs/${id}/ended-pods/`, { query: { page_size: 200 }, signal }),
    refetchInterval: SWEEP_MS,
  });
}

/** A part of one job: asked for again whenever the job changes. */
function part<Answer>(id: string, name: string, path: string) {
  return queryOptions({
    queryKey: ['jobs', 'one', id, name],
    queryFn: ({ signal }) => api.get<Answer>(path, { signal }),
    refetchInterval: SWEEP_MS,
  });
}

export const timelineQuery = (id: string) => part<Timeline>(id, 'timeline', `jobs/${id}/timeline/`);
export const explainQuery = (id: string) => part<Explanation>(id, 'explain', `jobs/${id}/explain/`);
export const attemptsQuery = (id: string) => part<Page<Attempt>>(id, 'attempts', `jobs/${id}/attempts/?page_size=200`);
export const noticesQuery = (id: string) => part<Notice[]>(id, 'notices', `jobs/${id}/notices/`);
export const queueUnitQuery = (id: string) => part<QueueUnit>(id, 'place', `queueunits/${id}/`);
export const copyQuery = (id: string) => part<Copy>(id, 'copy', `jobs/${id}/copy/`);

export function useJobAction(action: Action, job: Pick<Job, 'id'>, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      action === 'delete' ? api.delete(`jobs/${job.id}/`) : api.post(`jobs/${job.id}/${action}/`),
    onSuccess: () => {
      void refetch(client, 'jobs');
      onDone();
    },
  });
}

/** What each GPU of the job does, and did in so many hours. */
export function jobGpusQuery(id: string, hours: number) {
  return queryOptions({
    queryKey: ['jobs', 'gpus', id, hours],
    queryFn: ({ signal }) => api.get<JobGpus>(`jobs/${id}/gpu-usage/`, { query: { hours }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SWEEP_MS,
  });
}
