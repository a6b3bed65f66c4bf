/** Whether the server answers and whether the session still counts: learnt from every request, shown by the frame. */
import { useSyncExternalStore } from 'react';

export interface Connection {
  server: 'up' | 'down';
  session: 'open' | 'expired';
}

type Listener = () => void;

const listeners = new Set<Listener>();
let current: Connection = { server: 'up', session: 'open' };
let sessions = 0;

function change(part: Partial<Connection>): void {
  const next = { ...current, ...part };
  if (next.server === current.server && next.session === current.session) return;
  current = next;
  listeners.forEach((listener) => listener());
}

export const connection = {
  read: (): Connection => current,
  serverAnswered: () => change({ server: 'up' }),
  serverAway: () => change({ server: 'down' }),
  sessionOpened: () => {
    sessions += 1;
    change({ session: 'open' });
  },
  /** How many times a user has signed in on this page: read before a request, handed back with its answer. */
  sessions: () => sessions,
  /** An answer was 401. False if a user has signed in since the request was sent: worth sending it again. */
  sessionExpired: (asked: number): boolean => {
    if (asked !== sessions) return false;
    change({ session: 'expired' });
    return true;
  },
  subscribe: (listener: Listener): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

export function useConnection(): Connection {
  return useSyncExternalStore(connection.subscribe, connection.read);
}
