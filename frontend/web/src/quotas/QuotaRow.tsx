/** One quota as a row of the tree: focused and moved by keys, dropped upon by pointer. */
import type { DragEvent, KeyboardEvent } from 'react';

import type { QuotaNode } from '../api/types.ts';
import type { Bound, Quota } from './model.ts';
import { QueueCell } from './QueueCell.tsx';
import { QuotaLines } from './QuotaLines.tsx';
import { type NodeAction, QuotaName } from './QuotaName.tsx';
import type { Fault } from './rules.ts';
import classes from './QuotaGrid.module.css';

export interface RowProps {
  quota: Quota;
  before: Quota | undefined;
  node: QuotaNode | undefined;
  place: { index: number; size: number };
  resources: string[];
  scales: Record<string, number>;
  faults: Fault[];
  words: string[];
  obstacle: string;
  addObstacle: string;
  open: boolean;
  active: boolean;
  /** While something is dragged: whether it may be dropped here. */
  drop: 'yes' | 'no' | undefined;
  over: boolean;
  onChange: (bound: Bound, resource: string, text: string) => void;
  onAction: (action: NodeAction) => void;
  onToggle: () => void;
  onKeyDown: (event: KeyboardEvent<HTMLElement>) => void;
  onFocus: () => void;
  onDragStart: () => void;
  onDragOver: () => void;
  onDragEnd: () => void;
  onDrop: () => void;
}

export function QuotaRow(props: RowProps) {
  const { quota, node, open, place, drop, over } = props;
  const onDragOver = (event: DragEvent) => {
    props.onDragOver();
    if (drop === 'yes') event.preventDefault();
  };
  const fresh = props.before === undefined || props.before.path !== quota.path;
  return (
    <div
      role="row"
      className={classes['row']}
      data-path={quota.path}
      data-changed={fresh}
      data-drop={over ? drop : undefined}
      aria-level={quota.depth + 1}
      aria-setsize={place.size}
      aria-posinset={place.index + 1}
      aria-expanded={quota.children.length > 0 ? open : undefined}
      tabIndex={props.active ? 0 : -1}
      onKeyDown={props.onKeyDown}
      onFocus={props.onFocus}
      onDragOver={onDragOver}
      onDrop={(event) => {
        event.preventDefault();
        props.onDrop();
      }}
    >
      <div role="rowheader" className={classes['cell']}>
        <QuotaName
          quota={quota}
          open={open}
          obstacle={props.obstacle}
          addObstacle={props.addObstacle}
          onToggle={props.onToggle}
          onAction={props.onAction}
          onDragStart={props.onDragStart}
          onDragEnd={props.onDragEnd}
        />
      </div>
      <div role="gridcell" className={classes['cell']}>
        <QueueCell node={node} />
      </div>
      <QuotaLines
        quota={quota}
        before={props.before}
        node={node}
        resources={props.resources}
        scales={props.scales}
        faults={props.faults}
        words={props.words}
        obstacle={props.obstacle}
        onChange={props.onChange}
      />
    </div>
  );
}
