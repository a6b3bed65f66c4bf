/** Policies on a command line. */
import type { Policy } from '../api/types.ts';
import { type Commands, convoy, curl, kubectl, listOf, within } from '../ui/commands.ts';

export function commandsOfPolicies(namespace: string): Commands {
  const kinds = namespace ? 'propagationpolicies' : 'propagationpolicies,clusterpropagationpolicies';
  return {
    kubectl: kubectl('get', kinds, ...within(namespace)),
    cli: convoy('get', 'policies', ...within(namespace)),
    curl: curl(listOf('policies/', { namespace })),
  };
}

export function commandsOfPolicy({ id, kind, namespace, name }: Policy): Commands {
  const words = [kind.toLowerCase(), name, ...(namespace ? ['-n', namespace] : []), '-o', 'yaml'];
  return { kubectl: kubectl('get', ...words), cli: convoy('get', ...words), curl: curl(`policies/${id}/`) };
}
