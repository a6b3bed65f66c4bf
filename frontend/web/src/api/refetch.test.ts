import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';

import { refetch } from './refetch.ts';

function shown(client: QueryClient, answers: Promise<string>[]) {
  let asked = 0;
  const observer = new QueryObserver(client, { queryKey: ['tokens', { page: 1 }], queryFn: () => answers[asked++]!, retry: false });
  return { stop: observer.subscribe(() => undefined), data: () => observer.getCurrentResult().data };
}

test('what was asked before a change is asked again, also when it was the first time', async () => {
  const client = new QueryClient();
  let answer: (text: string) => void = () => undefined;
  const old = new Promise<string>((resolve) => {
    answer = resolve;
  });
  const list = shown(client, [old, Promise.resolve('after')]);
  const again = refetch(client, 'tokens');
  answer('before');
  await again;
  expect(list.data()).toBe('after');
  list.stop();
});

test('what is there stays until the new answer is', async () => {
  const client = new QueryClient();
  const list = shown(client, [Promise.resolve('before'), Promise.resolve('after')]);
  await expect.poll(list.data).toBe('before');
  const again = refetch(client, 'tokens', 'users');
  expect(list.data()).toBe('before');
  await again;
  expect(list.data()).toBe('after');
  list.stop();
});
