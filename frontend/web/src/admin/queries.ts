/** What the administrators' pages ask the server. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';

import { api, type Query } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import type { AuditEntry, AuditLine, Health, JobEvent, Lead, Page, Token, User } from '../api/types.ts';

const SWEEP_MS = 30_000;

function list<Row>(key: string, path: string, query: Query) {
  return queryOptions({
    queryKey: [key, query],
    queryFn: ({ signal }) => api.get<Page<Row>>(path, { query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SWEEP_MS,
  });
}

export const eventsQuery = (query: Query) => list<JobEvent>('events', 'events/', query);
export const auditQuery = (query: Query) => list<AuditLine>('audit', 'audit/', query);
export const usersQuery = (query: Query) => list<User>('users', 'users/', query);
export const leadsQuery = list<Lead>('leads', 'leads/', { page_size: 200 });
export const tokensQuery = list<Token>('tokens', 'tokens/', { page_size: 200 });

export function auditEntryQuery(id: number) {
  return queryOptions({
    queryKey: ['audit', 'one', id],
    queryFn: ({ signal }) => api.get<AuditEntry>(`audit/${id}/`, { signal }),
  });
}

/** A change of who may what; every list of it is asked for again. */
export function useAccessChange<Given, Answer>(send: (given: Given) => Promise<Answer>, onDone: (answer: Answer) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: (answer) => {
      void refetch(client, 'users', 'leads', 'tokens', 'quotas');
      onDone(answer);
    },
  });
}

/** The only active fleet admin, where the whole list is at hand; empty: there are several, or it is not known here. */
export function lastAdminOf({ count, results }: Page<User>): string {
  if (count > results.length) return '';
  const isAdmin = ({ active, superuser, roles }: User) =>
    active && (superuser || roles.some(({ role, namespace }) => role === 'fleet-admin' && namespace === ''));
  const [only, ...others] = results.filter(isAdmin);
  return only && others.length === 0 ? only.username : '';
}

export const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: ({ signal }) => api.get<Health>('system/', { signal }),
  refetchInterval: 5_000,
});
