import { expect, test } from 'vitest';

import { boundsOf, monthsUntil } from './period.ts';

const NOW = Date.parse('2026-01-15T12:00:00Z');

test('a period ends now, and a month that is over at its end', () => {
  expect(boundsOf({ period: '7d', month: '' }, NOW)).toEqual({ from: '2026-01-08T12:00:00.000Z' });
  expect(boundsOf({ period: 'month', month: '2025-12' }, NOW)).toEqual({ from: '2025-12-01T00:00:00.000Z', to: '2026-01-01T00:00:00.000Z' });
  expect(boundsOf({ period: 'month', month: '2026-01' }, NOW)).toEqual({ from: '2026-01-01T00:00:00.000Z' });
});

test('months go back over the turn of the year', () => {
  expect(monthsUntil(NOW, 3)).toEqual(['2026-01', '2025-12', '2025-11']);
});
