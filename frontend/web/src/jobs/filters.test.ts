import { describe, expect, test } from 'vitest';

import { ALL_JOBS, isNarrowed, queryOf, readFilters, writeFilters } from './filters.ts';

const read = (search: string) => readFilters(new URLSearchParams(search));

describe('filters of jobs', () => {
  test('an empty address shows all jobs, newest first', () => {
    expect(read('')).toEqual(ALL_JOBS);
    expect(writeFilters(ALL_JOBS).toString()).toBe('');
  });

  test('what is written is read back', () => {
    const filters = { ...ALL_JOBS, state: 'Queued', search: 'a&b=ü', cluster: 'north', ordering: 'name' };
    expect(readFilters(writeFilters(filters))).toEqual(filters);
  });

  test('an order narrows nothing', () => {
    expect(isNarrowed({ ...ALL_JOBS, ordering: 'name' })).toBe(false);
    expect(isNarrowed({ ...ALL_JOBS, kind: 'Job' })).toBe(true);
  });

  test('the server is asked in its own words', () => {
    expect(queryOf(read('state=Running'), 2)).toMatchObject({
      state: 'Running',
      page: 2,
      page_size: 100,
      ordering: '-created_at',
    });
  });
});
