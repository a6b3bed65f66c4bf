/** How far back charts look: kept in the address, the same for all charts of a page. */
import { useSearchParams } from 'react-router';

import { useChangeParams } from '../scope/useScope.ts';

export const RANGES = ['1h', '24h', '7d'] as const;

export type Range = (typeof RANGES)[number];

const HOUR_S = 3600;

/** Seconds back, and seconds of one step. */
export const SPANS: Record<Range, { seconds: number; step: number }> = {
  '1h': { seconds: HOUR_S, step: 10 },
  '24h': { seconds: 24 * HOUR_S, step: 60 },
  '7d': { seconds: 7 * 24 * HOUR_S, step: HOUR_S },
};

export function useRange(): [Range, (range: string) => void] {
  const [params] = useSearchParams();
  const change = useChangeParams();
  const range = RANGES.find((each) => each === params.get('range')) ?? '1h';
  return [range, (next) => change({ range: next === '1h' ? '' : next }, { replace: true })];
}
