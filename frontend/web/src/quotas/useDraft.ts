/** The draft of one visit to the page: collected here until it is applied, taken back, or put on top of a newer tree. */
import { useMemo, useState } from 'react';

import type { QuotaChange, QuotaTree } from '../api/types.ts';
import { differences, rebased, withChange } from './draft.ts';
import { drafted } from './model.ts';

interface Kept {
  base: QuotaTree;
  changes: QuotaChange[];
}

/** Typed back to what it was is no draft. */
function changed(base: QuotaTree, changes: QuotaChange[]): Kept | null {
  return differences(base, changes).length > 0 ? { base, changes } : null;
}

const NOTHING: QuotaChange[] = [];

export function useDraft(tree: QuotaTree) {
  const [kept, setKept] = useState<Kept | null>(null);
  const [lost, setLost] = useState(0);
  const base = kept?.base ?? tree;
  const changes = kept?.changes ?? NOTHING;
  const made = useMemo(() => ({ root: drafted(base, changes), differences: differences(base, changes) }), [base, changes]);
  return {
    base,
    changes,
    ...made,
    /** The newer generation, if another user saved one since the draft was begun. */
    theirs: kept && tree.generation !== kept.base.generation ? tree : null,
    /** How many changes made no sense any more after the last rebase. */
    lost,
    make: (change: QuotaChange) => {
      setLost(0);
      setKept((now) => changed(now?.base ?? tree, withChange(now?.changes ?? [], change)));
    },
    undo: () => setKept((now) => (now && now.changes.length > 1 ? { ...now, changes: now.changes.slice(0, -1) } : null)),
    /** What was changed while it was being saved stays a draft. */
    saved: (sent: QuotaChange[]) => setKept((now) => (now?.changes === sent ? null : now)),
    discard: () => {
      setKept(null);
      setLost(0);
    },
    rebase: () => {
      const { kept: rest, lost: gone } = rebased(tree, changes);
      setKept(rest.length ? { base: tree, changes: rest } : null);
      setLost(gone.length);
    },
  };
}

export type Draft = ReturnType<typeof useDraft>;
