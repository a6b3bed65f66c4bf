import { expect, test } from 'vitest';

import { EMPTY, rowsOf, textOf } from './windows.ts';

const WINDOWS = [
  { cron: '0 8 * * 1-5', duration: '10h', 'time-zone': 'Europe/Berlin', min: { 'nvidia.com/gpu:h100': 8, memory: '4Gi' } },
  { from: '2026-12-01T08:00:00Z', to: '2026-12-02T20:00:00Z', lead: '2h', max: { 'nvidia.com/gpu': 2 } },
];

test('windows are the same after they were shown', () => {
  const rows = rowsOf(JSON.stringify(WINDOWS));
  expect(rows?.map(({ again, min }) => [again, min])).toEqual([[true, 'nvidia.com/gpu:h100=8, memory=4Gi'], [false, '']]);
  expect(JSON.parse(textOf(rows ?? []))).toEqual(WINDOWS);
});

test('none is no attribute, and what is being written is handed on for the server to judge', () => {
  expect([rowsOf(''), textOf([])]).toEqual([[], '']);
  expect(JSON.parse(textOf([{ ...EMPTY, min: 'nvidia.com/gpu' }]))).toEqual([{ cron: '', min: { 'nvidia.com/gpu': '' } }]);
});

test.each(['{}', '[1]', '[{"cron": 5}]', '[{"min": 8}]', '[{"unknown": "x"}]', '[', '[{"again": true}]', '[{"toString": "x"}]', '[{"min": ["8"]}]'])('%s has to be mended as text', (text) => {
  expect(rowsOf(text)).toBeNull();
});

test('amounts beyond 2^53 are kept to the unit', () => {
  const text = '[{"cron": "0 8 * * *", "duration": "1h", "min": {"memory": "18014398509481985"}}]';
  const rows = rowsOf(text);
  expect(rows?.[0]?.min).toBe('memory=18014398509481985');
  expect(textOf(rows ?? [])).toContain('"memory":"18014398509481985"');
  expect(rowsOf(text.replace('"18014398509481985"', '18014398509481985'))).toBeNull();
});

test('an amount that stands twice is not dropped without a word', () => {
  expect(JSON.parse(textOf([{ ...EMPTY, min: 'cpu=4, cpu=8' }]))).toEqual([{ cron: '', min: { cpu: 4, 'cpu=8': 8 } }]);
});
