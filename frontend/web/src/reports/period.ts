/** The time that a report covers: the last day, week or 30 days, or a calendar month (UTC). It is kept in the address. */
import { useSearchParams } from 'react-router';

import { useChangeParams } from '../scope/useScope.ts';
import { useNow } from '../ui/clock.ts';

export const PERIODS = ['24h', '7d', '30d', 'month'] as const;

export type Period = (typeof PERIODS)[number];

export const HOUR_MS = 3_600_000;
const HOURS = { '24h': 24, '7d': 7 * 24, '30d': 30 * 24 } as const;
const MINUTE_S = 60;
const HOUR_S = 3600;

export interface Chosen {
  period: Period;
  /** Such as 2026-03: of the period month. */
  month: string;
}

/** From and until when, as the server is asked; without an end it is now. */
export interface Bounds {
  from: string;
  to?: string;
}

export function boundsOf({ period, month }: Chosen, now: number): Bounds {
  if (period !== 'month') return { from: new Date(now - HOURS[period] * HOUR_MS).toISOString() };
  const [year = 1970, number = 1] = month.split('-').map(Number);
  const end = Date.UTC(year, number, 1);
  const from = new Date(Date.UTC(year, number - 1, 1)).toISOString();
  return end > now ? { from } : { from, to: new Date(end).toISOString() };
}

const DAY_MS = 24 * HOUR_MS;

/** After how many milliseconds a report is asked for again; false: its time is over. */
export function againAfter({ from, to }: Bounds, now: number): number | false {
  if (to !== undefined && Date.parse(to) <= now) return false;
  return now - Date.parse(from) <= DAY_MS ? 60_000 : 600_000;
}

/** The part of a time that the server has kept; null: nothing of it. */
export function heldBounds(bounds: Bounds, earliest: string | null): Bounds | null {
  if (earliest === null || (bounds.to !== undefined && Date.parse(bounds.to) <= Date.parse(earliest))) return null;
  return Date.parse(bounds.from) < Date.parse(earliest) ? { ...bounds, from: earliest } : bounds;
}

/** The steps of values over time that fit the period, the finest first. */
export function stepsOf({ period }: Chosen): number[] {
  return period === '24h' ? [MINUTE_S, HOUR_S] : [HOUR_S];
}

/** This month and those before it, the latest first. */
export function monthsUntil(now: number, count = 12): string[] {
  const today = new Date(now);
  return Array.from({ length: count }, (_, i) => new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - i, 1)).toISOString().slice(0, 7));
}

export function usePeriod(usual: Period): [Chosen, (change: Partial<Chosen>) => void] {
  const [params] = useSearchParams();
  const change = useChangeParams();
  const now = useNow(HOUR_MS);
  const period = PERIODS.find((each) => each === params.get('period')) ?? usual;
  const stated = params.get('month') ?? '';
  const month = /^20\d\d-(0[1-9]|1[0-2])$/.test(stated) ? stated : (monthsUntil(now, 1)[0] ?? '');
  return [{ period, month }, (next) => change({ period: next.period === usual ? '' : next.period ?? period, month: next.month ?? stated }, { replace: true })];
}
