import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';

import type { QuotaChange, QuotaTree } from '../api/types.ts';
import { useDraft } from './useDraft.ts';

const GPU = 'nvidia.com/gpu';
const edit = (path: string, max: string): QuotaChange => ({ op: 'edit', path, set: { max: { [GPU]: max } } });
const tree = {
  generation: 1,
  changed_by: 'grace',
  manifest: { spec: { root: { max: { [GPU]: 8 }, children: [{ name: 'speech', max: { [GPU]: 6 } }] } } },
  nodes: [],
} as unknown as QuotaTree;

afterEach(cleanup);

test('what was saved is a draft no more', () => {
  const { result } = renderHook(() => useDraft(tree));
  act(() => result.current.make(edit('root/speech', '5')));
  act(() => result.current.saved(result.current.changes));
  expect(result.current.changes).toEqual([]);
});

test('what was typed while the draft was being saved stays', () => {
  const { result } = renderHook(() => useDraft(tree));
  act(() => result.current.make(edit('root/speech', '5')));
  const sent = result.current.changes;
  act(() => result.current.make(edit('root/speech', '4')));
  act(() => result.current.saved(sent));
  expect(result.current.changes).toEqual([edit('root/speech', '4')]);
});
