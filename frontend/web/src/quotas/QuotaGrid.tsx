/** The tree as a treegrid. Keeps what is folded and what is dragged; every change goes to the draft. */
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import type { QuotaPreview, QuotaTree } from '../api/types.ts';
import { useScope } from '../scope/useScope.ts';
import { boundChange } from './draft.ts';
import { mayAdd, mayEdit, narrowed, obstacleToMove, pointedAt, scalesOf, unfolded, wordsOf } from './grid.ts';
import { flat, loaded } from './model.ts';
import type { NodeAction } from './QuotaName.tsx';
import { QuotaRow } from './QuotaRow.tsx';
import { faultsOf, neighbour } from './rules.ts';
import type { Draft } from './useDraft.ts';
import { useTreeKeys } from './useTreeKeys.ts';
import classes from './QuotaGrid.module.css';

interface Props {
  /** With the use of now. */
  tree: QuotaTree;
  draft: Draft;
  preview: QuotaPreview | undefined;
  resources: string[];
  onAction: (path: string, action: NodeAction) => void;
}

export function QuotaGrid({ tree, draft, preview, resources, onAction }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [dragged, setDragged] = useState({ path: '', over: '' });
  const [said, setSaid] = useState('');
  const { root } = draft;
  const nodes = new Map(tree.nodes.map((node) => [node.path, node]));
  const before = new Map(flat(loaded(draft.base)).map((quota) => [quota.path, quota]));
  const byPath = new Map(flat(root).map((quota) => [quota.path, quota]));
  const faults = faultsOf(root);
  const scope = useScope();
  const rows = narrowed(unfolded(root, folded), pointedAt(tree.nodes, scope.queue, scope.namespace));
  const scales = scalesOf(draft.base, root, resources);

  const fold = (path: string, closed: boolean) =>
    setFolded((now) => new Set(closed ? [...now, path] : [...now].filter((each) => each !== path)));

  const move = (path: string, parent: string | undefined) => {
    const quota = byPath.get(path);
    const obstacle = parent === undefined ? 'itself' : obstacleToMove(nodes, root, path, parent);
    if (!parent || !quota || obstacle) {
      setSaid(t(`deferred:quotas.moveObstacle.${obstacle || 'itself'}`, { path }));
      return undefined;
    }
    draft.make({ op: 'move', path, parent });
    fold(parent, false);
    const goal = `${parent}/${quota.name}`;
    setSaid(t('deferred:quotas.moved', { path, goal }));
    return goal;
  };

  const { grid, active, setActive, onKeyDown } = useTreeKeys({
    start: useSearchParams()[0].get('node') ?? '',
    rows,
    folded,
    onFold: fold,
    onMove: (path, direction) => move(path, neighbour(root, path, direction)),
    onMenu: (path) => onAction(path, 'move'),
  });

  return (
    <div className={classes['scroller']}>
      <div ref={grid} role="treegrid" aria-label={t('deferred:quotas.title')} className={classes['grid']} data-dragging={dragged.path !== ''}>
        <Headings />
        {rows.map((quota) => {
          const siblings = byPath.get(quota.parent)?.children ?? [root];
          const obstacle = mayEdit(nodes, root, quota) ? '' : t('deferred:quotas.mayNot');
          return (
            <QuotaRow
              key={quota.origin || quota.path}
              quota={quota}
              before={before.get(quota.origin)}
              node={nodes.get(quota.origin)}
              place={{ index: siblings.findIndex(({ path }) => path === quota.path), size: siblings.length }}
              resources={resources}
              scales={scales}
              faults={faults}
              words={wordsOf(preview, quota.path, faults)}
              obstacle={obstacle}
              addObstacle={mayAdd(nodes, root, quota.path) ? '' : t('deferred:quotas.mayNot')}
              open={!folded.has(quota.path)}
              active={active === quota.path}
              drop={dragged.path ? (obstacleToMove(nodes, root, dragged.path, quota.path) ? 'no' : 'yes') : undefined}
              over={dragged.over === quota.path}
              onChange={(bound, resource, text) => draft.make(boundChange(quota, bound, resource, text))}
              onAction={(action) => onAction(quota.path, action)}
              onToggle={() => fold(quota.path, !folded.has(quota.path))}
              onKeyDown={(event) => onKeyDown(event, quota)}
              onFocus={() => setActive(quota.path)}
              onDragStart={() => setDragged({ path: quota.path, over: '' })}
              onDragOver={() => dragged.path && dragged.over !== quota.path && setDragged({ ...dragged, over: quota.path })}
              onDragEnd={() => setDragged({ path: '', over: '' })}
              onDrop={() => move(dragged.path, quota.path)}
            />
          );
        })}
      </div>
      <p role="status" className="cv-hidden">
        {said}
      </p>
    </div>
  );
}

function Headings() {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <div role="row" className={classes['head']}>
      {(['quota', 'queue', 'use', 'min', 'max'] as const).map((column) => (
        <span key={column} role="columnheader">
          {t(`deferred:quotas.column.${column}`)}
        </span>
      ))}
    </div>
  );
}
