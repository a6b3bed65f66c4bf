/** The scope of the page that is open, and ways to go elsewhere without losing it. */
import { useCallback } from 'react';
import { type NavigateOptions, useNavigate, useSearchParams } from 'react-router';

import { changedScope, readScope, type Scope, withScope } from './scope.ts';

export function useScope(): Scope {
  return readScope(useSearchParams()[0]);
}

export function useChangeScope(): (part: Partial<Scope>) => void {
  const [, setParams] = useSearchParams();
  return (part) => setParams((before) => changedScope(before, part));
}

/** Goes to an address of the console as the links do. */
export function useGo(): (to: string, options?: NavigateOptions) => void {
  const navigate = useNavigate();
  const scope = useScope();
  return (to, options) => void navigate(withScope(to, scope), options);
}

/** Changes some of the address' parameters and leaves the others; an empty text takes one away. */
export function useChangeParams(): (part: Record<string, string | string[]>, options?: NavigateOptions) => void {
  const [, setParams] = useSearchParams();
  return useCallback(
    (part, options) =>
      setParams((before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(part)) {
          next.delete(name);
          for (const each of [value].flat()) if (each) next.append(name, each);
        }
        return next;
      }, options),
    [setParams],
  );
}
