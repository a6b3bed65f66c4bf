import { expect, test } from 'vitest';

import { formatDuration } from './duration.ts';

test.each([
  [-3, '0s'],
  [0, '0s'],
  [59.9, '59s'],
  [60, '1m'],
  [185, '3m 5s'],
  [8_040, '2h 14m'],
  [86_400, '1d'],
  [97_200, '1d 3h'],
])('%d seconds read %s', (seconds, text) => {
  expect(formatDuration(seconds, 'en')).toBe(text);
});
