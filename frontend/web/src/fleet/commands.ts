/** The fleet, its clusters and what is done to them, on a command line. */
import type { Cluster } from '../api/types.ts';
import type { Scope } from '../scope/scope.ts';
import { type Commands, convoy, curl, kubectl, kubectlPatch, listOf, quoted, within } from '../ui/commands.ts';
import { CORDONED, DRAINED, peoplesTaints, type Steering } from './steering.ts';

const pathOf = (name: string) => `clusters/${encodeURIComponent(name)}/`;

export function commandsOfFleet(): Commands {
  return { kubectl: kubectl('get', 'clusters'), cli: convoy('get', 'clusters'), curl: curl('clusters/') };
}

export function commandsOfCluster(name: string): Commands {
  return { kubectl: kubectl('describe', 'cluster', name), cli: convoy('describe', 'cluster', name), curl: curl(pathOf(name)) };
}

/** Over kubectl cordon and drain are taints. */
export function commandsToSteer(action: Steering, cluster: Cluster): Commands {
  const { name } = cluster;
  const others = peoplesTaints(cluster);
  const cordon = cluster.cordoned ? [CORDONED] : [];
  const taints = { cordon: [...others, CORDONED], drain: [...others, ...cordon, DRAINED], uncordon: others }[action];
  const patch = kubectlPatch(['cluster', name], { spec: { taints } });
  return { kubectl: patch, cli: convoy('cluster', action, name), curl: curl(`${pathOf(name)}${action}/`, 'POST') };
}

export function commandsToSteerNode(action: Steering, cluster: string, node: string): Commands {
  const path = `${pathOf(cluster)}nodes/${encodeURIComponent(node)}/${action}/`;
  return { cli: convoy('cluster', action, cluster, node), curl: curl(path, 'POST') };
}

export function commandsToDetach(name: string): Commands {
  return { kubectl: kubectl('delete', 'cluster', name), cli: convoy('cluster', 'detach', name), curl: curl(pathOf(name), 'DELETE') };
}

/** What a fleet admin turns on and off of the access to a cluster. */
export type AccessSetting = 'people' | 'tokens';

export function commandsOfAccess(setting: AccessSetting, on: boolean, name: string): Commands {
  const [verb, part] = { people: ['impersonate', 'impersonation'], tokens: ['tokens', 'short-lived-tokens'] }[setting] as [string, string];
  return {
    cli: convoy('cluster', verb, name, ...(on ? [] : ['--off'])),
    curl: curl(`${pathOf(name)}${part}/`, 'PUT', { on }),
  };
}

export function commandsToJoin(name: string): Commands {
  return { cli: `convoy cluster join ${quoted(name || 'NAME')} --kubeconfig FILE` };
}

export function commandsOfEvents(scope: Scope, query: { search?: string; type?: string; reason?: string }): Commands {
  const filters = Object.entries({ type: query.type, reason: query.reason }).filter(([, value]) => value);
  const chosen = filters.map(([key, value]) => `${key}=${value ?? ''}`).join(',');
  const where = within(scope.namespace);
  return {
    kubectl: kubectl('get', 'events', ...where, ...(chosen ? ['--field-selector', chosen] : [])),
    cli: chosen ? undefined : convoy('get', 'events', ...where),
    curl: curl(listOf('events/', { ...scope, ...query })),
  };
}
