/** Who is signed in and what they may do. */
import { queryOptions, useQuery } from '@tanstack/react-query';

import { api } from './client.ts';
import type { Me } from './types.ts';

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => api.get<Me>('me/', { signal }),
  staleTime: 60_000,
});

/** Whether this may be done anywhere at all. The server decides again per object; this only saves a refusal. */
export function useMay(action: string): boolean {
  const { data } = useQuery(meQuery);
  return data?.can[action] ?? false;
}

export interface Credentials {
  username: string;
  password: string;
}

export const session = {
  /** The first GET hands out the CSRF cookie that the POST wants back. */
  async open(credentials: Credentials): Promise<Me> {
    await api.get('session/');
    return api.post<Me>('session/', credentials);
  },
  close: () => api.delete('session/'),
};
