/** Which jobs are shown, kept in the address so that a view can be shared and walked back from. Pure. */
import type { Query } from '../api/client.ts';

const TEXTS = ['search', 'state', 'namespace', 'kind', 'cluster', 'queue', 'reason', 'policy', 'user', 'labels'] as const;

export type TextFilter = (typeof TEXTS)[number];

export interface JobFilters extends Record<TextFilter, string> {
  ordering: string;
}

export const PAGE_SIZE = 100;

export const ALL_JOBS: JobFilters = {
  search: '',
  state: '',
  namespace: '',
  kind: '',
  cluster: '',
  queue: '',
  reason: '',
  policy: '',
  user: '',
  labels: '',
  ordering: '-created_at',
};

export function readFilters(params: URLSearchParams): JobFilters {
  const texts = Object.fromEntries(TEXTS.map((name) => [name, params.get(name)?.trim() ?? ''])) as Record<TextFilter, string>;
  return { ...texts, ordering: params.get('ordering') ?? ALL_JOBS.ordering };
}

/** Only what differs from the default, so that an address stays short. */
export function writeFilters(filters: JobFilters): URLSearchParams {
  return new URLSearchParams(Object.entries(filters).filter(([name, value]) => value !== ALL_JOBS[name as keyof JobFilters]));
}

/** With what the jobs are grouped by, and which columns are shown. */
export function writeView(filters: JobFilters, { group, columns }: { group: string; columns: string }): URLSearchParams {
  const view = writeFilters(filters);
  if (group) view.set('group', group);
  if (columns) view.set('columns', columns);
  return view;
}

export function isNarrowed(filters: JobFilters): boolean {
  return TEXTS.some((name) => filters[name] !== '');
}

/** As the server's list takes them. */
export function searchOf(filters: JobFilters): string {
  const given = Object.entries(filters).filter(([, value]) => value !== '');
  return new URLSearchParams(given).toString();
}

/** One page of the list, from 1. */
export function queryOf(filters: JobFilters, page: number): Query {
  return { ...filters, page, page_size: PAGE_SIZE };
}
