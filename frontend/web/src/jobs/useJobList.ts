/** The jobs that match, read page by page as rows come into sight; pages read once stay at hand. */
import { useQueries } from '@tanstack/react-query';
import { useState } from 'react';

import type { Job } from '../api/types.ts';
import type { Range } from '../ui/VirtualTable.tsx';
import { type JobFilters, PAGE_SIZE } from './filters.ts';
import { jobsQuery } from './queries.ts';

export interface JobList {
  /** Undefined while nothing is known yet. */
  count: number | undefined;
  loaded: Job[];
  error: Error | null;
  rowAt: (index: number) => Job | undefined;
  onRange: (range: Range) => void;
  retry: () => void;
}

export function useJobList(filters: JobFilters): JobList {
  const [pages, setPages] = useState({ first: 1, last: 1 });
  // The first page is always among them: it knows how many there are while others are on their way.
  const numbers = [...new Set([1, ...span(pages.first, pages.last)])];
  const answers = useQueries({ queries: numbers.map((page) => jobsQuery(filters, page)) });
  const known = answers[0]?.data;
  const failed = answers.find(({ error, data }) => error && !data);
  return {
    count: known?.count,
    loaded: answers.flatMap(({ data }) => data?.results ?? []),
    error: failed?.error ?? null,
    rowAt: (index) => answers[numbers.indexOf(Math.floor(index / PAGE_SIZE) + 1)]?.data?.results[index % PAGE_SIZE],
    onRange: ({ first, end }) => {
      const next = pagesOf(first, end, known?.count ?? 0);
      if (next.first !== pages.first || next.last !== pages.last) setPages(next);
    },
    retry: () => answers.forEach((answer) => void answer.refetch()),
  };
}

const span = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, place) => first + place);

/** Which pages these rows are on; there is always one. */
function pagesOf(first: number, end: number, count: number): { first: number; last: number } {
  const last = Math.max(1, Math.ceil(Math.min(end, count) / PAGE_SIZE));
  return { first: Math.min(Math.floor(first / PAGE_SIZE) + 1, last), last };
}
