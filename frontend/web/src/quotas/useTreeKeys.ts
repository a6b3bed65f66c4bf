/** The keys of the tree: arrows walk, fold and unfold, Alt with an arrow moves a quota, Enter and Escape go in and out. */
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';

import type { Quota } from './model.ts';

interface Options {
  /** The row an address points at: it has the focus first. */
  start: string;
  rows: Quota[];
  folded: ReadonlySet<string>;
  onFold: (path: string, folded: boolean) => void;
  onMove: (path: string, direction: 'in' | 'out') => string | undefined;
  onMenu: (path: string) => void;
}

export function useTreeKeys({ start, rows, folded, onFold, onMove, onMenu }: Options) {
  const grid = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(start || 'root');
  const wanted = useRef(start);
  const focus = (path: string | undefined) => path && rowOf(grid.current, path)?.focus();

  // A row that was moved is another element under another path: it keeps the focus.
  useEffect(() => {
    if (wanted.current && focus(wanted.current) !== '') wanted.current = '';
  });

  const walk = (quota: Quota, key: string): string | undefined => {
    const at = rows.findIndex(({ path }) => path === quota.path);
    const closed = folded.has(quota.path);
    if (key === 'ArrowDown') return rows[at + 1]?.path;
    if (key === 'ArrowUp') return rows[at - 1]?.path;
    if (key === 'Home') return rows[0]?.path;
    if (key === 'End') return rows.at(-1)?.path;
    if (key === 'ArrowRight') return closed ? undefined : quota.children[0]?.path;
    return quota.children.length > 0 && !closed ? undefined : quota.parent;
  };

  const onKeyDown = (event: KeyboardEvent<HTMLElement>, quota: Quota) => {
    const { key, altKey, currentTarget: row, target } = event;
    if (key === 'Escape' && target !== row) row.focus();
    if (target !== row || event.ctrlKey || event.metaKey) return;
    if (altKey && (key === 'ArrowRight' || key === 'ArrowLeft')) {
      wanted.current = onMove(quota.path, key === 'ArrowRight' ? 'in' : 'out') ?? '';
    } else if (key === 'Enter') row.querySelector('input')?.focus();
    else if (key === 'm') onMenu(quota.path);
    else if (KEYS.has(key)) {
      if (key === 'ArrowRight' && folded.has(quota.path)) onFold(quota.path, false);
      if (key === 'ArrowLeft' && quota.children.length > 0) onFold(quota.path, true);
      focus(walk(quota, key));
    } else return;
    event.preventDefault();
  };

  return { grid, active: rows.some(({ path }) => path === active) ? active : 'root', setActive, onKeyDown };
}

const KEYS = new Set(['ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'Home', 'End']);

function rowOf(grid: HTMLElement | null, path: string): HTMLElement | null {
  return grid?.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`) ?? null;
}
