/** Keyboard shortcuts: single keys and two-key sequences ("g f"), silent while a field has the focus or a dialog is open. */
import { useEffect, useRef } from 'react';

export type Shortcuts = Record<string, () => void>;

const SEQUENCE_MS = 900;

export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts);
  useEffect(() => {
    latest.current = shortcuts;
  });
  useEffect(() => {
    let first = { key: '', at: 0 };
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const sequence = event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ${event.key}` : '';
      const run = latest.current[sequence] ?? latest.current[event.key];
      first = { key: event.key, at: event.timeStamp };
      if (!run) return;
      event.preventDefault();
      run();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}

function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector('[role="dialog"], [role="menu"]')) return true;
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
