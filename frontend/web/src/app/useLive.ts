/** Keeps the live line open while somebody is signed in, and says how it is. */
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
