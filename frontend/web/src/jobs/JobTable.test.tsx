import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, test, vi } from 'vitest';

import type { Job } from '../api/types.ts';
import { JobTable } from './JobTable.tsx';

const onSelect = vi.fn();
const job = (name: string) => ({ id: name, name, state: 'Queued', created_at: '2026-01-01T12:00:00Z' }) as Job;

function table(jobs: Job[] | undefined, selected: string[] = []) {
  const list = { count: jobs?.length, loaded: jobs ?? [], error: null, rowAt: (index: number) => jobs?.[index], onRange: vi.fn(), retry: vi.fn() };
  return (
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider withCssVariables={false}>
        <MemoryRouter>
          <JobTable list={list} columns={[]} ordering="name" onOrder={vi.fn()} selected={new Set(selected)} onSelect={onSelect} />
        </MemoryRouter>
      </MantineProvider>
    </QueryClientProvider>
  );
}

const all = () => screen.getByRole<HTMLInputElement>('checkbox', { name: 'list.selectAll' });

afterEach(cleanup);

test('selects all that are loaded, once there are any, and says when others came since', () => {
  const { rerender } = render(table(undefined));
  expect(all().disabled).toBe(true);
  rerender(table([job('giant'), job('huge')]));
  expect(all().disabled).toBe(false);
  fireEvent.click(all());
  expect(onSelect).toHaveBeenCalledExactlyOnceWith(['giant', 'huge'], true);
  rerender(table([job('giant'), job('huge')], ['giant', 'huge']));
  expect(all().checked).toBe(true);
  rerender(table([job('giant'), job('huge'), job('late')], ['giant', 'huge']));
  expect([all().checked, all().indeterminate]).toEqual([false, true]);
});

test('the menu of a job stays that of the job when others come before it', () => {
  const { rerender } = render(table([job('giant')]));
  fireEvent.click(screen.getByRole('button', { name: 'jobs.actionsFor' }));
  rerender(table([job('first'), job('giant')]));
  const open = screen.getAllByRole('button', { name: 'jobs.actionsFor', hidden: true }).filter((button) => button.getAttribute('aria-expanded') === 'true');
  expect(open.map((button) => button.closest('tr')?.querySelector('a')?.textContent)).toEqual(['giant']);
});

test('a row that two pages have for a moment is shown twice', () => {
  render(table([job('giant'), job('giant')]));
  expect(screen.getAllByRole('link', { name: 'giant' })).toHaveLength(2);
});
