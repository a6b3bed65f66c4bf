/** A shared clock: however many ages a page shows, one timer per step moves them. */
import { useSyncExternalStore } from 'react';

interface Ticker {
  subscribe: (listener: () => void) => () => void;
  read: () => number;
}

const tickers = new Map<number, Ticker>();

function tickerFor(stepMs: number): Ticker {
  const known = tickers.get(stepMs);
  if (known) return known;
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  let now = Date.now();
  const tick = () => {
    now = Date.now();
    listeners.forEach((listener) => listener());
  };
  const ticker: Ticker = {
    subscribe(listener) {
      if (listeners.size === 0) {
        now = Date.now();
        timer = setInterval(tick, stepMs);
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) clearInterval(timer);
      };
    },
    read: () => now,
  };
  tickers.set(stepMs, ticker);
  return ticker;
}

export function useNow(stepMs: number): number {
  const ticker = tickerFor(stepMs);
  return useSyncExternalStore(ticker.subscribe, ticker.read);
}
