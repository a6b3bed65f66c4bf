import { expect, test } from 'vitest';

import { commandsOfList, commandsToAct } from './commands.ts';
import { ALL_JOBS } from './filters.ts';

const job = (kind: string, version: string) => ({ id: '1', kind, api_version: version, namespace: 'a b', name: 'x' });

test.each([
  ['PyTorchJob', 'kubeflow.org/v1', 'pytorchjob', '{"spec":{"runPolicy":{"suspend":true}}}'],
  ['Job', 'batch/v1', 'job.batch', '{"spec":{"suspend":true}}'],
  ['Job', 'batch.volcano.sh/v1alpha1', 'jobs.batch.volcano.sh', '{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"}}}'],
])('suspends a %s of %s by the switch of its kind', (kind, version, word, patch) => {
  const { kubectl, cli } = commandsToAct('suspend', job(kind, version));
  expect(kubectl).toBe(`kubectl --kubeconfig .convoy/kubeconfig patch ${word} x -n 'a b' --type merge -p '${patch}'`);
  expect(cli).toBe(`convoy suspend ${word} x -n 'a b'`);
});

test('offers only what narrows a list as the page does', () => {
  expect(commandsOfList({ ...ALL_JOBS, labels: 'a in (b,c)', namespace: 'vision' }).cli).toBe(`convoy get jobs -n vision -l 'a in (b,c)'`);
  expect(commandsOfList({ ...ALL_JOBS, reason: 'QuotaExceeded' })).toMatchObject({ kubectl: undefined, cli: undefined });
});
