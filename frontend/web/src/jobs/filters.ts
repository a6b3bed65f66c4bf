/** Which jobs are shown, kept in the address so that a view can be shared and walked back from. Pure. */
import type { Query } from '../api/client.ts';

const TEXTS = ['search', 'state', 'namespace', 'kind', 'cluster', 'queue', 'reason', 'labels'] as const;

export type TextFilter = (typeof TEXTS)[number];

export interface JobFilters extends Record<TextFilter, string> {
  ordering: string;
  page: number;
}

export const PAGE_SIZE = 50;

export const ALL_JOBS: JobFilters = {
  search: '',
  state: '',
  namespace: '',
  kind: '',
  cluster: '',
  queue: '',
  reason: '',
  labels: '',
  ordering: '-created_at',
  page: 1,
};

export function readFilters(params: URLSearchParams): JobFilters {
  const texts = Object.fromEntries(TEXTS.map((name) => [name, params.get(name)?.trim() ?? ''])) as Record<TextFilter, string>;
  const page = Number(params.get('page') ?? 1);
  return {
    ...texts,
    ordering: params.get('ordering') ?? ALL_JOBS.ordering,
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  };
}

/** Only what differs from the default, so that an address stays short. */
export function writeFilters(filters: JobFilters): URLSearchParams {
  const changed = Object.entries(filters).filter(([name, value]) => value !== ALL_JOBS[name as keyof JobFilters]);
  return new URLSearchParams(changed.map(([name, value]) => [name, String(value)]));
}

/** Another filter or order is another list: it starts at its first page. */
export function change(filters: JobFilters, part: Partial<JobFilters>): JobFilters {
  return { ...filters, page: 1, ...part };
}

export function isNarrowed(filters: JobFilters): boolean {
  return TEXTS.some((name) => filters[name] !== '');
}

/** As the server's list takes them, whatever the page. */
export function searchOf(filters: JobFilters): string {
  const given = Object.entries({ ...filters, page: '' }).filter(([, value]) => value !== '');
  return new URLSearchParams(given).toString();
}

export function queryOf(filters: JobFilters): Query {
  return { ...filters, page_size: PAGE_SIZE };
}
