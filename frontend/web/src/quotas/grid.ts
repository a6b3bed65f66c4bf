/** What the rows of the tree show: who is in sight, how long the bars are, what is said beside them. Pure. */
import type { QuotaNode, QuotaPreview, QuotaTree } from '../api/types.ts';
import { amountOf, find, flat, loaded, type Quota } from './model.ts';
import { type Fault, moveObstacle } from './rules.ts';

export type Nodes = Map<string, QuotaNode>;
export type MoveObstacle = ReturnType<typeof moveObstacle> | 'mayNot';

/** The quotas in sight, parents before their children. */
export function unfolded(quota: Quota, folded: ReadonlySet<string>): Quota[] {
  const below = folded.has(quota.path) ? [] : quota.children.flatMap((child) => unfolded(child, folded));
  return [quota, ...below];
}

/** Those on the way to a queue, and it with all below it. */
export function narrowed(rows: Quota[], queue: string): Quota[] {
  if (!queue) return rows;
  return rows.filter(({ path }) => `${path}/`.startsWith(`${queue}/`) || `${queue}/`.startsWith(`${path}/`));
}

/** Where the address points: a queue, or the one whose jobs are of a namespace. */
export function pointedAt(nodes: QuotaNode[], queue: string, namespace: string): string {
  const named = nodes.find(({ path }) => path === queue) ?? nodes.find((node) => namespace && node.namespaces.includes(namespace));
  return named?.path ?? '';
}

/** One that is new is whose may put it there. */
export function mayEdit(nodes: Nodes, root: Quota, quota: Quota): boolean {
  const node = nodes.get(quota.origin);
  return node ? node.may_edit : mayAdd(nodes, root, quota.parent);
}

export function mayAdd(nodes: Nodes, root: Quota, path: string): boolean {
  const quota = find(root, path);
  if (!quota) return false;
  return nodes.get(quota.origin)?.may_add ?? mayAdd(nodes, root, quota.parent);
}

export function obstacleToMove(nodes: Nodes, root: Quota, path: string, goal: string): MoveObstacle {
  const quota = find(root, path);
  if (!quota || !mayEdit(nodes, root, quota) || !mayAdd(nodes, root, goal)) return 'mayNot';
  return moveObstacle(root, path, goal);
}

/** One scale for all bars of a resource: the whole fleet's, and it does not shrink while a handle is held. */
export function scalesOf(base: QuotaTree, root: Quota, resources: string[]): Record<string, number> {
  const first = loaded(base);
  const longest = (resource: string) => {
    const used = base.nodes[0]?.resources[resource]?.used ?? 0;
    const own = flat(root).map((quota) => Math.max(amountOf(quota, 'max', resource) ?? 0, amountOf(quota, 'min', resource) ?? 0));
    const whole = amountOf(root, 'max', resource);
    return Math.max(used, amountOf(first, 'max', resource) ?? 0, whole ?? Math.max(...own), 1);
  };
  return Object.fromEntries(resources.map((resource) => [resource, longest(resource)]));
}

/** What the server has against a quota beyond what shows at once. */
export function wordsOf(preview: QuotaPreview | undefined, path: string, faults: Fault[]): string[] {
  const known = new Set(faults.map((each) => `${each.path} ${each.bound}.${each.resource}`));
  const further = preview?.faults.filter((each) => each.path === path && !known.has(`${path} ${each.field}`)) ?? [];
  return further.map(({ field, detail }) => (field ? `${field}: ${detail}` : detail));
}
