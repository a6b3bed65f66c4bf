/**
 * The quota tree as it would be: what was loaded and the changes made to it since, in the order the server will make them.
 * Pure; a change is kept as the server takes it, so only what was touched is ever sent.
 */
import type { QuotaChange, QuotaTree } from '../api/types.ts';
import { unitsOf } from './amounts.ts';

export type Bound = 'min' | 'max';
export type Quantities = Record<string, string>;

export interface Quota {
  path: string;
  name: string;
  parent: string;
  depth: number;
  /** Its path in the tree that was loaded, under which its use is known; empty for a new one. */
  origin: string;
  min: Quantities;
  max: Quantities;
  namespaces: string[];
  attributes: Record<string, string>;
  children: Quota[];
}

interface Written {
  name?: string;
  min?: Record<string, string | number>;
  max?: Record<string, string | number>;
  namespaces?: string[];
  attributes?: Record<string, unknown>;
  children?: Written[];
}

const ROOT = 'root';

export function loaded(tree: Pick<QuotaTree, 'manifest'>): Quota {
  const spec = tree.manifest['spec'] as { root: Written };
  return numbered(built(spec.root, ROOT), '', 0, true);
}

/** The tree after all changes. Changes that make no sense on it are left out and returned by `replayed`. */
export function drafted(tree: Pick<QuotaTree, 'manifest'>, changes: QuotaChange[]): Quota {
  return replayed(tree, changes).root;
}

export function replayed(tree: Pick<QuotaTree, 'manifest'>, changes: QuotaChange[]) {
  let root = loaded(tree);
  const kept: QuotaChange[] = [];
  const lost: QuotaChange[] = [];
  for (const change of changes) {
    const done = OPERATIONS[change.op](root, change);
    (done ? kept : lost).push(change);
    if (done && change.op !== 'edit') root = numbered(root, '', 0, false);
  }
  return { root, kept, lost };
}

export function flat(root: Quota): Quota[] {
  return [root, ...root.children.flatMap(flat)];
}

export function find(root: Quota, path: string): Quota | undefined {
  return flat(root).find((each) => each.path === path);
}

export function amountOf(quota: Quota, bound: Bound, resource: string): number | null {
  const text = quota[bound][resource];
  return text === undefined ? null : unitsOf(resource, text);
}

/** False, and nothing done, where it cannot be: its quota is gone, its place is taken, or it would be below itself. */
const OPERATIONS: Record<QuotaChange['op'], (root: Quota, change: QuotaChange) => boolean> = {
  edit: (root, { path = '', set = {} }) => {
    const quota = find(root, path);
    if (!quota) return false;
    const { min, max, attributes, namespaces } = set as Written;
    merge(quota.min, min);
    merge(quota.max, max);
    merge(quota.attributes, attributes);
    if (namespaces) quota.namespaces = namespaces;
    return true;
  },
  add: (root, { parent = '', node = {} }) => {
    const written = node as Written;
    return adopt(find(root, parent), built(written, written.name ?? ''));
  },
  remove: (root, { path = '' }) => taken(root, path) !== undefined,
  move: (root, { path = '', parent = '' }) => {
    const quota = find(root, path);
    const goal = find(root, parent);
    if (!quota || !goal || parent === path || parent.startsWith(`${path}/`)) return false;
    return !goal.children.some(({ name }) => name === quota.name) && taken(root, path) !== undefined && adopt(goal, quota);
  },
  rename: (root, { path = '', name = '' }) => {
    const quota = find(root, path);
    if (!quota || path === ROOT) return false;
    const siblings = find(root, quota.parent)?.children ?? [];
    if (siblings.some((each) => each !== quota && each.name === name)) return false;
    quota.name = name;
    return true;
  },
};

function adopt(parent: Quota | undefined, quota: Quota): boolean {
  if (!parent || parent.children.some((each) => each.name === quota.name)) return false;
  parent.children.push(quota);
  return true;
}

function taken(root: Quota, path: string): Quota | undefined {
  const quota = find(root, path);
  const parent = quota && find(root, quota.parent);
  if (!parent) return undefined;
  parent.children = parent.children.filter((each) => each !== quota);
  return quota;
}

/** A null takes the key away. */
function merge(texts: Record<string, string>, given: Record<string, unknown> = {}): void {
  for (const [key, value] of Object.entries(given)) {
    if (value === null) Reflect.deleteProperty(texts, key);
    else texts[key] = text(value);
  }
}

function built(written: Written, name: string): Quota {
  return {
    path: '',
    name,
    parent: '',
    depth: 0,
    origin: '',
    min: textsOf(written.min),
    max: textsOf(written.max),
    namespaces: written.namespaces ?? [],
    attributes: textsOf(written.attributes),
    children: (written.children ?? []).map((child) => built(child, child.name ?? '')),
  };
}

/** A quota by itself, out of a manifest. */
export function asWritten(written: Record<string, unknown>): Quota {
  return built(written, '');
}

function textsOf(given: Record<string, unknown> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, text(value)]));
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function numbered(quota: Quota, parent: string, depth: number, first: boolean): Quota {
  const path = parent ? `${parent}/${quota.name}` : quota.name;
  const children = quota.children.map((child) => numbered(child, path, depth + 1, first));
  return { ...quota, path, parent, depth, origin: first ? path : quota.origin, children };
}
