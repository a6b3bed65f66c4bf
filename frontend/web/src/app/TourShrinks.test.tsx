import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { configure, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { expect, test, vi } from 'vitest';

import { api } from '../api/client.ts';
import { meQuery } from '../api/me.ts';
import { TourReclaim } from './TourReclaim.tsx';

configure({ asyncUtilTimeout: 20_000 });

const pod = { node: 'gpu-1', cluster: 'north', phase: 'Running', attempt: 1, index: 2 };

/** The tour beside a job whose number of workers is `sized`; what it is now is read by `look`. */
function tour() {
  const fleet = { replicas: 3, notices: [] as object[] };
  const job = () => ({
    id: '7', name: 'elastic', namespace: 'default', cluster: 'north', attempt: 1, state: 'Running',
    size: { Worker: { replicas: fleet.replicas, min: 1 } },
  });
  const pages: Record<string, () => object[]> = { 'clusters/': () => [{ name: 'north', simulated: true }], 'jobs/': () => [job()], 'jobs/7/pods/': () => [pod] };
  vi.spyOn(api, 'get').mockImplementation((path: string) => {
    if (path.endsWith('notices/')) return Promise.resolve(fleet.notices as never);
    const page = pages[path];
    return Promise.resolve((page ? { count: 1, results: page() } : job()) as never);
  });
  vi.spyOn(api, 'post').mockResolvedValue(undefined);
  vi.spyOn(api, 'delete').mockResolvedValue(undefined);
  const client = new QueryClient();
  client.setQueryData(meQuery.queryKey, { can: { cordon: true } } as never);
  render(
    <QueryClientProvider client={client}>
      <MantineProvider withCssVariables={false}>
        <MemoryRouter>
          <TourReclaim />
        </MemoryRouter>
      </MantineProvider>
    </QueryClientProvider>,
  );
  const look = (now: Partial<typeof fleet>) => {
    Object.assign(fleet, now);
    return client.refetchQueries();
  };
  return { look };
}

test('tells in order that a worker saved, that the job has fewer, and that it has as many again', async () => {
  const { look } = tour();
  fireEvent.click(await screen.findByRole('button', { name: 'tour.reclaim.act' }));
  expect(await screen.findByText('tour.reclaim.isReclaimed')).toBeTruthy();
  await look({ notices: [{ node: 'gpu-1', pod: 'elastic-2', left_at: '2026-11-01T00:00:00Z', saved_step: 40 }] });
  expect(await screen.findByText('tour.reclaim.saved')).toBeTruthy();
  expect(screen.queryByText('tour.reclaim.shrunk'), 'it has as many as before').toBeNull();
  await look({ replicas: 2 });
  expect((await screen.findByText('tour.reclaim.shrunk')).closest('a')?.getAttribute('href')).toBe('/jobs/7');
  expect(screen.queryByText('tour.reclaim.grown')).toBeNull();
  fireEvent.click(screen.getByRole('button', { name: 'tour.reclaim.back' }));
  expect(await screen.findByText('tour.reclaim.isBack')).toBeTruthy();
  await look({ replicas: 3 });
  expect(await screen.findByText('tour.reclaim.grown')).toBeTruthy();
  expect(screen.queryByText('tour.reclaim.isBack'), 'it has grown back').toBeNull();
  expect(screen.getByText('tour.reclaim.shrunk')).toBeTruthy();
});
