/**
 * The rules of min and max as the server has them, so that a number or a handle is judged while it moves. Pure.
 * The server checks everything once more, and the rest: this only saves the wait.
 */
import { unitsOf } from './amounts.ts';
import { type Bound, flat, find, type Quota } from './model.ts';

export interface Fault {
  path: string;
  bound: Bound;
  resource: string;
  code: 'unreadable' | 'minOverMax' | 'maxMissing' | 'overCeiling' | 'childrenOverMin' | 'rootDiffers';
  /** The two numbers that do not agree, in whole units. */
  have?: number;
  limit?: number;
}

type Limits = Record<string, number>;

export function faultsOf(root: Quota): Fault[] {
  return below(root, {});
}

export function faultAt(faults: Fault[], path: string, bound: Bound, resource: string): Fault | undefined {
  return faults.find((each) => each.path === path && each.bound === bound && each.resource === resource);
}

/** Why it may not go there, as far as it shows at once. */
export function moveObstacle(root: Quota, path: string, goal: string): 'itself' | 'here' | 'named' | '' {
  const quota = find(root, path);
  const parent = find(root, goal);
  if (!quota || !parent || goal === path || goal.startsWith(`${path}/`)) return 'itself';
  if (quota.parent === goal) return 'here';
  return parent.children.some(({ name }) => name === quota.name) ? 'named' : '';
}

/** Where a row goes by Alt and an arrow: below the one before it, or beside its parent. */
export function neighbour(root: Quota, path: string, direction: 'in' | 'out'): string | undefined {
  const quota = flat(root).find((each) => each.path === path);
  const parent = quota && find(root, quota.parent);
  if (!parent) return undefined;
  if (direction === 'out') return parent.parent || undefined;
  return parent.children[parent.children.findIndex((each) => each.path === path) - 1]?.path;
}

function below(quota: Quota, ceiling: Limits): Fault[] {
  const [min, max] = [limits(quota, 'min'), limits(quota, 'max')];
  const lower = { ...ceiling };
  for (const [resource, high] of Object.entries(max)) lower[resource] = Math.min(high, ceiling[resource] ?? high);
  return [
    ...unreadable(quota),
    ...own(quota, min, max),
    ...overCeiling(quota, max, ceiling),
    ...sums(quota, min),
    ...quota.children.flatMap((child) => below(child, lower)),
  ];
}

function limits(quota: Quota, bound: Bound): Limits {
  const read = Object.entries(quota[bound]).map(([resource, text]) => [resource, unitsOf(resource, text)] as const);
  return Object.fromEntries(read.filter((entry): entry is [string, number] => entry[1] !== null));
}

function unreadable({ path, ...quota }: Quota): Fault[] {
  return (['min', 'max'] as const).flatMap((bound) =>
    Object.entries(quota[bound])
      .filter(([resource, text]) => unitsOf(resource, text) === null)
      .map(([resource]) => ({ path, bound, resource, code: 'unreadable' as const })),
  );
}

function own({ path, parent }: Quota, min: Limits, max: Limits): Fault[] {
  const faults: Fault[] = [];
  for (const resource of new Set([...Object.keys(min), ...(parent ? [] : Object.keys(max))])) {
    const [low, high] = [min[resource], max[resource]];
    const about = { path, resource, ...(low === undefined ? {} : { have: low }), ...(high === undefined ? {} : { limit: high }) };
    if (!parent && low !== high) faults.push({ ...about, bound: 'max', code: 'rootDiffers' });
    else if (low !== undefined && high === undefined) faults.push({ ...about, bound: 'min', code: 'maxMissing' });
    else if (low !== undefined && high !== undefined && low > high) faults.push({ ...about, bound: 'min', code: 'minOverMax' });
  }
  return faults;
}

function overCeiling({ path }: Quota, max: Limits, ceiling: Limits): Fault[] {
  return Object.entries(max).flatMap(([resource, have]) => {
    const limit = ceiling[resource];
    return limit !== undefined && have > limit ? [{ path, bound: 'max', resource, code: 'overCeiling', have, limit }] : [];
  });
}

function sums({ path, children }: Quota, min: Limits): Fault[] {
  const total: Limits = {};
  for (const child of children) {
    for (const [resource, low] of Object.entries(limits(child, 'min'))) total[resource] = (total[resource] ?? 0) + low;
  }
  return Object.entries(total).flatMap(([resource, have]) => {
    const limit = min[resource] ?? 0;
    return have > limit ? [{ path, bound: 'min', resource, code: 'childrenOverMin', have, limit }] : [];
  });
}
