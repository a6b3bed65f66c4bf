/** The part of the fleet in view: a namespace, a queue with all below it, a cluster. It lives in the address. Pure. */

export const SCOPE_KEYS = ['namespace', 'queue', 'cluster'] as const;

export type ScopeKey = (typeof SCOPE_KEYS)[number];

export type Scope = Record<ScopeKey, string>;

export const EVERYTHING: Scope = { namespace: '', queue: '', cluster: '' };

export function readScope(params: URLSearchParams): Scope {
  return Object.fromEntries(SCOPE_KEYS.map((key) => [key, params.get(key)?.trim() ?? ''])) as Scope;
}

/** Where a link leads within this scope: what the link itself says of the scope goes first. */
export function withScope(to: string, scope: Scope): string {
  const [path = '', search = ''] = to.split('?', 2);
  const params = new URLSearchParams(search);
  for (const key of SCOPE_KEYS) {
    if (!params.has(key) && scope[key]) params.set(key, scope[key]);
    if (params.get(key) === '') params.delete(key);
  }
  return params.size > 0 ? `${path}?${params}` : path || '?';
}

/** The address' other parameters, and the scope as it is now. */
export function changedScope(params: URLSearchParams, part: Partial<Scope>): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [key, value] of Object.entries(part)) {
    if (value) next.set(key, value);
    else next.delete(key);
  }
  next.delete('page');
  return next;
}
