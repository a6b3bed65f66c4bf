import { beforeEach, describe, expect, test, vi } from 'vitest';

import { Coalescer, type Key } from './coalescer.ts';

const JOBS = ['jobs', 'list'];

function coalescerOver(fetch: (key: Key) => Promise<unknown>) {
  return new Coalescer({
    intervalMs: 500,
    settleMs: 40,
    now: () => Date.now(),
    later: (run, ms) => setTimeout(run, ms),
    fetch,
  });
}

describe('Coalescer', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  test('fetches once for changes that come together', async () => {
    const fetch = vi.fn(() => Promise.resolve());
    const coalescer = coalescerOver(fetch);
    for (let change = 0; change < 20; change += 1) coalescer.changed(JOBS);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(fetch).toHaveBeenCalledExactlyOnceWith(JOBS);
  });

  test('fetches at most twice a second under a storm of 200 changes a second', async () => {
    const fetch = vi.fn(() => Promise.resolve());
    const coalescer = coalescerOver(fetch);
    for (let change = 0; change < 2_000; change += 1) {
      coalescer.changed(JOBS);
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(fetch.mock.calls.length).toBeGreaterThanOrEqual(19);
    expect(fetch.mock.calls.length).toBeLessThanOrEqual(21);
  });

  test('fetches again for a change that came while a fetch was under way', async () => {
    const fetch = vi.fn(() => new Promise((done) => setTimeout(done, 3_000)));
    const coalescer = coalescerOver(fetch);
    coalescer.changed(JOBS);
    await vi.advanceTimersByTimeAsync(1_000);
    coalescer.changed(JOBS);
    expect(fetch).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test('keeps keys apart', async () => {
    const fetch = vi.fn(() => Promise.resolve());
    const coalescer = coalescerOver(fetch);
    coalescer.changed(JOBS);
    coalescer.changed(['clusters']);
    await vi.advanceTimersByTimeAsync(40);
    expect(fetch.mock.calls).toEqual([[JOBS], [['clusters']]]);
  });

  test('goes on after a fetch that failed', async () => {
    const fetch = vi.fn(() => Promise.reject(new Error('away')));
    const coalescer = coalescerOver(fetch);
    coalescer.changed(JOBS);
    await vi.advanceTimersByTimeAsync(600);
    coalescer.changed(JOBS);
    await vi.advanceTimersByTimeAsync(600);
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test('remembers nothing of keys that are quiet', async () => {
    const coalescer = coalescerOver(() => Promise.resolve());
    for (let id = 0; id < 500; id += 1) coalescer.changed(['jobs', 'one', String(id)]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(coalescer.size).toBe(0);
  });
});
