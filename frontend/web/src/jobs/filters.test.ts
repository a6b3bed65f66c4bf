import { describe, expect, test } from 'vitest';

import { ALL_JOBS, change, isNarrowed, queryOf, readFilters, writeFilters } from './filters.ts';

const read = (search: string) => readFilters(new URLSearchParams(search));

describe('filters of jobs', () => {
  test('an empty address shows all jobs, newest first', () => {
    expect(read('')).toEqual(ALL_JOBS);
    expect(writeFilters(ALL_JOBS).toString()).toBe('');
  });

  test('what is written is read back', () => {
    const filters = { ...ALL_JOBS, state: 'Queued', search: 'a&b=ü', cluster: 'north', ordering: 'name', page: 3 };
    expect(readFilters(writeFilters(filters))).toEqual(filters);
  });

  test.each(['0', '-2', '1.5', 'x', '1e99', ''])('page %s is the first page', (page) => {
    expect(read(`page=${page}`).page).toBe(1);
  });

  test('another filter starts at the first page, another page does not', () => {
    const third = { ...ALL_JOBS, page: 3 };
    expect(change(third, { state: 'Failed' })).toMatchObject({ state: 'Failed', page: 1 });
    expect(change(third, { page: 4 }).page).toBe(4);
  });

  test('order and page narrow nothing', () => {
    expect(isNarrowed({ ...ALL_JOBS, ordering: 'name', page: 2 })).toBe(false);
    expect(isNarrowed({ ...ALL_JOBS, kind: 'Job' })).toBe(true);
  });

  test('the server is asked in its own words', () => {
    expect(queryOf(read('state=Running&page=2'))).toMatchObject({
      state: 'Running',
      page: 2,
      page_size: 50,
      ordering: '-created_at',
    });
  });
});
