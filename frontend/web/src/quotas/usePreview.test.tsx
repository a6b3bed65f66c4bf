import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, configure, renderHook, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';

import { api } from '../api/client.ts';
import type { QuotaChange } from '../api/types.ts';
import { usePreview } from './usePreview.ts';

configure({ asyncUtilTimeout: 20_000 });
afterEach(cleanup);

const draft = (max: string): QuotaChange[] => [{ op: 'edit', path: 'root/speech', set: { max: { 'nvidia.com/gpu': max } } }];

test('neither the answer nor the refusal of a draft is shown beside a newer one', async () => {
  const refused = new Error('there is no such quota');
  const answer = vi.spyOn(api, 'post').mockRejectedValue(refused);
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const [first, second, third] = [draft('5'), draft('4'), draft('3')];
  const { result, rerender } = renderHook(({ changes }) => usePreview(1, changes), {
    initialProps: { changes: first },
    wrapper: ({ children }) => <QueryClientProvider client={client}>{children}</QueryClientProvider>,
  });
  await waitFor(() => expect(result.current).toEqual({ preview: undefined, looking: false, failed: refused }));
  answer.mockResolvedValue({ saves: true });
  rerender({ changes: second });
  expect(result.current).toEqual({ preview: undefined, looking: true, failed: null });
  await waitFor(() => expect(result.current).toEqual({ preview: { saves: true }, looking: false, failed: null }));
  rerender({ changes: third });
  expect(result.current).toEqual({ preview: undefined, looking: true, failed: null });
});
