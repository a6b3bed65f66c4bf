import { expect, test } from 'vitest';

import { staleKeys } from '../api/changes.ts';
import { gpuGroupsQuery, idleGpusQuery } from './queries.ts';

test.each(['Cluster', 'Node', 'Pod', 'PyTorchJob'])('a change of a %s does not ask again what reads all GPUs of the fleet', (kind) => {
  const stale = staleKeys({ kind, namespace: '', name: 'x', id: '7', version: 1, action: 'modified' });
  const asked = [gpuGroupsQuery('queue').queryKey, idleGpusQuery.queryKey];
  for (const key of stale) for (const kept of asked) expect(kept.slice(0, key.length)).not.toEqual(key);
});
