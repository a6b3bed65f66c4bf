import { cleanup, renderHook, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { loadExample } from './examples.ts';
import { useBeginning } from './useBeginning.ts';

vi.mock('./examples.ts', () => ({ loadExample: vi.fn(), loadJob: vi.fn() }));

const show = vi.fn();
let answer: (text: string) => void;

beforeEach(() => {
  show.mockReset();
  vi.mocked(loadExample).mockImplementation(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
});
afterEach(cleanup);

const begin = () =>
  renderHook(({ example, text }) => useBeginning(example, null, false, text, show), { initialProps: { example: 'pytorchjob', text: '' } });

test('an example takes the place of what was there when it was chosen', async () => {
  const { rerender } = begin();
  answer('first');
  await waitFor(() => expect(show).toHaveBeenCalledWith('first'));
  rerender({ example: 'mpijob', text: 'first' });
  answer('second');
  await waitFor(() => expect(show).toHaveBeenLastCalledWith('second'));
});

test('an example that comes late leaves alone what was typed meanwhile', async () => {
  const { rerender } = begin();
  rerender({ example: 'pytorchjob', text: 'kind: Mine' });
  answer('first');
  await Promise.resolve();
  await Promise.resolve();
  expect(show).not.toHaveBeenCalled();
});
