/** Keeps the live connection open while a user is signed in, and returns its status. */
import { useEffect, useSyncExternalStore } from 'react';

import type { LiveState } from '../api/live.ts';
import { live } from './client.ts';

export function useLiveLine(): void {
  useEffect(() => {
    const look = () => live.setHidden(document.hidden);
    const online = () => live.reconnect();
    document.addEventListener('visibilitychange', look);
    window.addEventListener('online', online);
    live.start();
    return () => {
      document.removeEventListener('visibilitychange', look);
      window.removeEventListener('online', online);
      live.stop();
    };
  }, []);
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(live.subscribe, live.read);
}
