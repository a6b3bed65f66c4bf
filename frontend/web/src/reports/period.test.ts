import { expect, test } from 'vitest';

import { againAfter, boundsOf, heldBounds, monthsUntil } from './period.ts';

const NOW = Date.parse('2026-01-15T12:00:00Z');

test('a period ends now, and a month that is over at its end', () => {
  expect(boundsOf({ period: '7d', month: '' }, NOW)).toEqual({ from: '2026-01-08T12:00:00.000Z' });
  expect(boundsOf({ period: 'month', month: '2025-12' }, NOW)).toEqual({ from: '2025-12-01T00:00:00.000Z', to: '2026-01-01T00:00:00.000Z' });
  expect(boundsOf({ period: 'month', month: '2026-01' }, NOW)).toEqual({ from: '2026-01-01T00:00:00.000Z' });
});

test('months go back over the turn of the year', () => {
  expect(monthsUntil(NOW, 3)).toEqual(['2026-01', '2025-12', '2025-11']);
});

test('what goes on is asked for again, seldom when it is long, and what is over never', () => {
  const again = (period: '24h' | '7d' | '30d' | 'month', month = '') => againAfter(boundsOf({ period, month }, NOW), NOW);
  expect([again('24h'), again('7d'), again('30d'), again('month', '2026-01'), again('month', '2025-12')]).toEqual([60_000, 600_000, 600_000, 600_000, false]);
});

test('a time begins where the server has kept it from, and is none where it ends before', () => {
  const month = boundsOf({ period: 'month', month: '2025-12' }, NOW);
  expect(heldBounds(month, '2025-12-20T00:00:00Z')).toEqual({ ...month, from: '2025-12-20T00:00:00Z' });
  expect(heldBounds(month, '2025-11-20T00:00:00Z')).toEqual(month);
  expect(heldBounds(month, '2026-01-01T00:00:00Z')).toBeNull();
});
