/** Incidents: a page of them, and one as a whole story. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { api } from '../api/client.ts';
import type { Incident, IncidentStory, Page } from '../api/types.ts';
import type { Scope } from '../scope/scope.ts';
import { type Commands, curl, listOf } from '../ui/commands.ts';

const REFRESH_MS = 10_000;

export interface IncidentQuery extends Scope {
  open: string;
  page: number;
  page_size: number;
}

export const incidentsQuery = (query: IncidentQuery) =>
  queryOptions({
    queryKey: ['incidents', query],
    queryFn: ({ signal }) => api.get<Page<Incident>>('incidents/', { query: { ...query }, signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  });

export const pathOf = (id: string) => `incidents/${encodeURIComponent(id)}/`;

export const incidentQuery = (id: string) =>
  queryOptions({
    queryKey: ['incident', id],
    queryFn: ({ signal }) => api.get<IncidentStory>(pathOf(id), { signal }),
    refetchInterval: REFRESH_MS,
  });

export const commandsOfIncidents = (scope: Scope, open: string): Commands => ({ curl: curl(listOf('incidents/', { ...scope, open })) });

export const commandsOfIncident = (id: string): Commands => ({ curl: curl(`${pathOf(id)}postmortem/`) });
