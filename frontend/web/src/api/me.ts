/** Who is signed in and what they may do. */
import { queryOptions, useQuery } from '@tanstack/react-query';

import { api } from './client.ts';
import { connection } from './connection.ts';
import type { Signed } from './passkeys.ts';
import type { Me, Session } from './types.ts';

export class SignedOut extends Error {
  override readonly name = 'SignedOut';
}

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => whoAmI(signal),
  staleTime: 60_000,
});

/** What strangers may know before they sign in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => api.get<Session>('session/', { signal }),
  staleTime: 60_000,
});

/** The session is asked first: it answers strangers too, and hands out the CSRF cookie that changes want back. */
async function whoAmI(signal: AbortSignal): Promise<Me> {
  const asked = connection.sessions();
  const { signed_in: signedIn } = await api.get<Session>('session/', { signal });
  if (!signedIn) {
    if (!connection.sessionExpired(asked)) return whoAmI(signal);
    throw new SignedOut();
  }
  return api.get<Me>('me/', { signal });
}

/** Whether this may be done anywhere at all. The server decides again per object; this only saves a refusal. */
export function useMay(action: string): boolean {
  const { data } = useQuery(meQuery);
  return data?.can[action] ?? false;
}

export interface Credentials {
  username: string;
  password: string;
  /** Of the second factor, once it was asked for. */
  code?: string;
  /** Instead of a code. */
  passkey?: Signed;
}

/** With recovery codes when this sign-in has set a second factor up. */
export type SignedIn = Me & { recovery_codes?: string[] };

export const session = {
  open: (credentials: Credentials) => api.post<SignedIn>('session/', credentials),
  close: () => api.delete('session/'),
};
