/** What a message on the websocket says has changed, and which kept answers are stale by it. */
import type { Key } from './coalescer.ts';

export interface Change {
  kind: string;
  namespace: string;
  name: string;
  id: string;
  version: number;
  action: 'added' | 'modified' | 'deleted';
}

/** Null for anything that is not a change: pings, greetings, what a newer server may add. */
export function readChange(text: string): Change | null {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return null;
  }
  return isChange(message) ? message : null;
}

function isChange(message: unknown): message is Change {
  return typeof message === 'object' && message !== null && 'kind' in message && typeof message.kind === 'string';
}

type Stale = (change: Change) => Key[];

const STALE: Record<string, Stale> = {
  Cluster: () => [['clusters'], ['events']],
  Node: () => [['clusters']],
  Pod: () => [['jobs', 'one']],
  ElasticQuotaTree: () => [['quotas']],
  Queue: () => [['quotas']],
};

/** What travels along with jobs: no page shows it. */
const UNSHOWN = /^(ConfigMap|Secret|ServiceAccount|PersistentVolumeClaim|Namespace)$/;

/** A job comes under its own kind (PyTorchJob, Job, ...), and new kinds of jobs need no change here. */
const job: Stale = ({ id }) => [['jobs', 'list'], ['jobs', 'one', id], ['clusters', 'list'], ['quotas', 'tree'], ['events']];

export function staleKeys(change: Change): Key[] {
  if (UNSHOWN.test(change.kind)) return [];
  if (change.kind.endsWith('Policy')) return [['policies']];
  return (STALE[change.kind] ?? job)(change);
}
