import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, configure, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, test, vi } from 'vitest';

import { api } from '../api/client.ts';
import { meQuery } from '../api/me.ts';
import { TourReclaim } from './TourReclaim.tsx';

configure({ asyncUtilTimeout: 20_000 });

const job = {
  id: '7', name: 'elastic', namespace: 'default', cluster: 'north', attempt: 1, state: 'Running', size: { Worker: { replicas: 3, min: 1 } },
};
const pod = { node: 'gpu-1', cluster: 'north', phase: 'Running', attempt: 1, index: 2 };

function tour(pods: object[]) {
  const answers: Record<string, object[]> = { 'clusters/': [{ name: 'north', simulated: true }], 'jobs/': [job], 'jobs/7/pods/': pods };
  vi.spyOn(api, 'get').mockImplementation((path: string) =>
    Promise.resolve((path.endsWith('notices/') ? [] : (answers[path] && { count: 1, results: answers[path] }) ?? job) as never),
  );
  const client = new QueryClient();
  client.setQueryData(meQuery.queryKey, { can: { cordon: true } } as never);
  return render(
    <QueryClientProvider client={client}>
      <MantineProvider withCssVariables={false}>
        <MemoryRouter>
          <TourReclaim />
        </MemoryRouter>
      </MantineProvider>
    </QueryClientProvider>,
  );
}

const press = async () => fireEvent.click(await screen.findByRole('button', { name: 'tour.reclaim.act' }));

afterEach(cleanup);

test('says that no pod runs and what to do, while no node can be reclaimed, and is silent again once one is', async () => {
  const post = vi.spyOn(api, 'post').mockResolvedValue(undefined);
  const { unmount } = tour([{ ...pod, phase: 'Pending' }, { ...pod, attempt: 0 }]);
  await press();
  expect((await screen.findByText(/tour.reclaim.noPod/)).closest('[role=status]')).toBeTruthy();
  expect(screen.getByRole('link', { name: 'tour.reclaim.seePods' }).getAttribute('href')).toBe('/jobs/7');
  expect(post).not.toHaveBeenCalled();
  unmount();
  tour([pod]);
  await press();
  expect(await screen.findByText('tour.reclaim.isReclaimed')).toBeTruthy();
  expect(screen.queryByText(/noPod/)).toBeNull();
  expect(post).toHaveBeenCalledExactlyOnceWith('clusters/north/nodes/gpu-1/reclaim/', { notice_s: 30 });
});
