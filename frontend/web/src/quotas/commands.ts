/** The quota tree and its queues on a command line. */
import type { QuotaNode } from '../api/types.ts';
import { type Commands, convoy, curl, kubectl } from '../ui/commands.ts';
import type { QueueVerb, Saving } from './queries.ts';

export function commandsOfTree(): Commands {
  return {
    kubectl: kubectl('get', 'elasticquotatrees', '-n', 'kube-system', '-o', 'yaml'),
    cli: convoy('queue', 'tree'),
    curl: curl('quota/tree/'),
  };
}

export function commandsToSave(saving: Saving): Commands {
  return { curl: curl('quota/tree/', 'PATCH', saving) };
}

export function commandsToRevert(body: { to: number; generation: number; comment: string }): Commands {
  return { curl: curl('quota/tree/revert/', 'POST', body) };
}

export function commandsToSwitch(verb: QueueVerb, { queue, path }: QuotaNode, comment: string): Commands {
  return {
    cli: convoy('queue', verb, path, ...(comment ? ['-m', comment] : [])),
    curl: curl(`queues/${queue}/${verb}/`, 'POST', { comment }),
  };
}
