/** The kept answers of the server, and the live line that says when they are stale. */
import { type InvalidateQueryFilters, QueryClient } from '@tanstack/react-query';

import { staleKeys } from '../api/changes.ts';
import { api, worthRetrying } from '../api/client.ts';
import { Coalescer } from '../api/coalescer.ts';
import { connection } from '../api/connection.ts';
import { Live } from '../api/live.ts';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: { retry: worthRetrying, networkMode: 'always', staleTime: 5_000, refetchOnWindowFocus: false },
    mutations: { networkMode: 'always' },
  },
});

/** A fetch under way goes on: under a steady stream of changes a cancelled one would never end. */
function fetchAgain(filters: InvalidateQueryFilters = {}): Promise<void> {
  return queryClient.invalidateQueries(filters, { cancelRefetch: false });
}

export function fetchAllAgain(): void {
  void fetchAgain();
}

const coalescer = new Coalescer({
  intervalMs: 500,
  settleMs: 40,
  now: () => performance.now(),
  later: (run, ms) => setTimeout(run, ms),
  fetch: (queryKey) => fetchAgain({ queryKey }),
});

let sessionOfLine = 0;

export const live = new Live({
  open: () => {
    sessionOfLine = connection.sessions();
    return new WebSocket(`${window.location.protocol === 'https:' ? 'wss' : 'ws'}://${window.location.host}/ws/changes/`);
  },
  now: () => Date.now(),
  random: () => Math.random(),
  onChange: (change) => staleKeys(change).forEach((key) => coalescer.changed(key)),
  onGap: fetchAllAgain,
  onLost: () => void api.get('session/').catch(() => undefined),
  onSignedOut: () => {
    if (!connection.sessionExpired(sessionOfLine)) live.reconnect();
  },
});
