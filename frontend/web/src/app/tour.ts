/** Progress of the tour, kept in this browser: never seen, open at a step, put away at a step, or done. */
import { useSyncExternalStore } from 'react';

export const TOUR_STEPS = ['fleet', 'submit', 'waiting', 'quota', 'reclaim', 'kill'] as const;

export interface TourState {
  status: 'new' | 'open' | 'away' | 'done';
  step: number;
}

const KEPT = 'convoy.tour';
const STATUSES: TourState['status'][] = ['new', 'open', 'away', 'done'];
const FRESH: TourState = { status: 'new', step: 0 };

const listeners = new Set<() => void>();
let current = read();

function read(): TourState {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? 'null') as Partial<TourState> | null;
    const status = STATUSES.find((each) => each === found?.status);
    const step = Math.min(Math.max(Math.trunc(Number(found?.step)) || 0, 0), TOUR_STEPS.length - 1);
    return status ? { status, step } : FRESH;
  } catch {
    return FRESH;
  }
}

function change(next: TourState): void {
  current = next;
  try {
    localStorage.setItem(KEPT, JSON.stringify(next));
  } catch {
    // A browser that keeps nothing shows the tour until the page is left.
  }
  listeners.forEach((listener) => listener());
}

export const tour = {
  /** From the start when it was done, else where it was left. */
  open: () => change({ status: 'open', step: current.status === 'done' ? 0 : current.step }),
  goTo: (step: number) => change({ status: 'open', step }),
  putAway: () => change({ ...current, status: 'away' }),
  finish: () => change({ status: 'done', step: 0 }),
};

export function useTour(): TourState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
