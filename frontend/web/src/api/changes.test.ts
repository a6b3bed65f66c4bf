import { describe, expect, test } from 'vitest';

import { readChange, staleKeys } from './changes.ts';

const change = (kind: string) => ({ kind, namespace: '', name: 'x', id: '7', version: 1, action: 'added' as const });

describe('readChange', () => {
  test('reads a change', () => {
    expect(readChange(JSON.stringify(change('Job')))).toEqual(change('Job'));
  });

  test.each(['{"type":"ping"}', 'no json', 'null', '[]', '{"kind":7}'])('takes %s for no change', (text) => {
    expect(readChange(text)).toBeNull();
  });
});

describe('staleKeys', () => {
  test.each(['PyTorchJob', 'Job', 'RayJob'])('a %s makes its own page, the lists and the clusters it fills stale', (kind) => {
    expect(staleKeys(change(kind))).toEqual([
      ['jobs', 'list'],
      ['jobs', 'one', '7'],
      ['clusters', 'list'],
      ['quotas', 'tree'],
      ['events'],
    ]);
  });

  test('what no page shows makes nothing stale, and a policy the policies', () => {
    expect(staleKeys(change('Secret'))).toEqual([]);
    expect(staleKeys(change('OverridePolicy'))).toEqual([['policies']]);
  });
});
