/** A draft: unsaved changes, the tree they result in, and how they merge with the changes of others. Pure. */
import type { QuotaChange, QuotaDifference, QuotaTree } from '../api/types.ts';
import { asWritten, type Bound, drafted, flat, loaded, type Quota, replayed } from './model.ts';

export interface Difference {
  path: string;
  /** As in "min nvidia.com/gpu"; empty for the quota as a whole. */
  field: string;
  before: string;
  after: string;
}

/** The same number typed or dragged again is still one change. */
export function withChange(changes: QuotaChange[], change: QuotaChange): QuotaChange[] {
  const last = changes.at(-1);
  const again = last?.op === 'edit' && change.op === 'edit' && last.path === change.path && target(last) === target(change);
  return again ? [...changes.slice(0, -1), change] : [...changes, change];
}

function target({ set = {} }: QuotaChange): string {
  return Object.entries(set)
    .map(([part, value]) => `${part}(${value && typeof value === 'object' ? Object.keys(value).join() : ''})`)
    .join();
}

/** A root has the same min and max: one number for both. */
export function boundChange(quota: Quota, bound: Bound, resource: string, text: string): QuotaChange {
  const value = text.trim() === '' ? null : text.trim();
  const both = { min: { [resource]: value }, max: { [resource]: value } };
  return { op: 'edit', path: quota.path, set: quota.parent ? { [bound]: { [resource]: value } } : both };
}

export function differences(tree: QuotaTree, changes: QuotaChange[]): Difference[] {
  const before = new Map(flat(loaded(tree)).map((each) => [each.path, each]));
  const now = flat(drafted(tree, changes));
  const origins = new Map(now.map(({ path, origin }) => [path, origin]));
  const kept = new Set(now.map(({ origin }) => origin));
  const gone = [...before.keys()].filter((path) => !kept.has(path));
  return [
    ...gone.map((path) => ({ path, field: '', before: path, after: '' })),
    ...now.flatMap((quota) => ofQuota(before.get(quota.origin), quota, origins.get(quota.parent) ?? '')),
  ];
}

/** The same changes upon what another user has saved meanwhile; `lost` no longer make sense there. */
export function rebased(tree: QuotaTree, changes: QuotaChange[]) {
  const { kept, lost } = replayed(tree, changes);
  return { kept, lost };
}

/** What both have changed: the second person decides knowing it. */
export function overlaps(base: QuotaTree, theirs: QuotaTree, changes: QuotaChange[]): Difference[] {
  const mine = new Map(differences(base, changes).map((each) => [`${each.path} ${each.field}`, each]));
  const then = new Map(flat(loaded(base)).map((each) => [each.path, each]));
  return flat(loaded(theirs))
    .flatMap((quota) => ofQuota(then.get(quota.path), quota, quota.parent))
    .filter(({ path, field }) => mine.has(`${path} ${field}`));
}

/** What the server says differs between two generations. */
export function fieldsOf({ path, before, after }: QuotaDifference): Difference[] {
  if (!after) return [{ path, field: '', before: path, after: '' }];
  const now = { ...asWritten(after), path };
  if (!before) return [{ path, field: '', before: '', after: path }, ...fields(BARE, now)];
  return fields(asWritten(before), now);
}

function ofQuota(before: Quota | undefined, quota: Quota, parentOrigin: string): Difference[] {
  const { path } = quota;
  if (!before) return [{ path, field: '', before: '', after: path }, ...fields(BARE, quota)];
  // A quota that moves along with its parent has not been moved itself.
  const stayed = parentOrigin === before.parent && before.name === quota.name;
  const moved = stayed ? [] : [{ path, field: '', before: before.path, after: path }];
  return [...moved, ...fields(before, quota)];
}

const BARE: Pick<Quota, 'min' | 'max' | 'attributes' | 'namespaces'> = { min: {}, max: {}, attributes: {}, namespaces: [] };

function fields(before: typeof BARE, { path, ...quota }: Quota): Difference[] {
  const found: Difference[] = [];
  const record = (field: string, was = '', is = '') => {
    if (was !== is) found.push({ path, field, before: was, after: is });
  };
  for (const part of ['min', 'max', 'attributes'] as const) {
    for (const key of new Set([...Object.keys(before[part]), ...Object.keys(quota[part])])) {
      record(part === 'attributes' ? key : `${part} ${key}`, before[part][key], quota[part][key]);
    }
  }
  record('namespaces', before.namespaces.join(', '), quota.namespaces.join(', '));
  return found;
}
