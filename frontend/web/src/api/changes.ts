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

const STALE: Record<string, (change: Change) => Key[]> = {
  Cluster: () => [['clusters']],
  Node: () => [['clusters']],
  Job: ({ id }) => [['jobs', 'list'], ['jobs', 'one', id], ['clusters', 'list']],
  Pod: () => [['jobs', 'one']],
  Binding: () => [['jobs', 'one'], ['clusters', 'list']],
  Event: () => [['jobs', 'one']],
};

export function staleKeys(change: Change): Key[] {
  return STALE[change.kind]?.(change) ?? [];
}
