/** The name of a quota at its place in the tree: folded by its arrow, moved by its grip, changed by its menu. */
import { ActionIcon, Menu } from '@mantine/core';
import { ChevronDown, ChevronRight, Ellipsis, GripVertical, Lock } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Quota } from './model.ts';
import classes from './QuotaGrid.module.css';

export type NodeAction = 'add' | 'settings' | 'move' | 'remove';

interface Props {
  quota: Quota;
  open: boolean;
  /** Why nothing may be changed here, and why nothing may be put below. */
  obstacle: string;
  addObstacle: string;
  onToggle: () => void;
  onDragStart: () => void;
  onDragEnd: () => void;
  onAction: (action: NodeAction) => void;
}

export function QuotaName({ quota, open, obstacle, onToggle, onDragStart, onDragEnd, ...menu }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { path, name, namespaces, children, depth } = quota;
  const Chevron = open ? ChevronDown : ChevronRight;
  return (
    <div className={classes['name']} style={{ paddingInlineStart: 4 + depth * 18 }}>
      {children.length > 0 ? (
        <button
          type="button"
          tabIndex={-1}
          className={classes['toggle']}
          aria-label={t(open ? 'deferred:quotas.fold' : 'deferred:quotas.unfold', { path })}
          onClick={onToggle}
        >
          <Chevron size={15} aria-hidden />
        </button>
      ) : (
        <span className={classes['toggle']} />
      )}
      <div className={classes['label']}>
        <b>{name}</b>
        {namespaces.length > 0 && <span title={namespaces.join(', ')}>{namespaces.join(', ')}</span>}
      </div>
      {obstacle ? (
        <span className={classes['lock']} title={obstacle} role="img" aria-label={obstacle}>
          <Lock size={13} aria-hidden />
        </span>
      ) : (
        depth > 0 && (
          <span
            role="button"
            tabIndex={-1}
            draggable
            className={classes['grip']}
            aria-label={t('deferred:quotas.drag', { path })}
            title={t('deferred:quotas.dragNote')}
            onClick={() => menu.onAction('move')}
            onKeyDown={(event) => event.key === 'Enter' && menu.onAction('move')}
            onDragStart={(event) => {
              event.dataTransfer.effectAllowed = 'move';
              event.dataTransfer.setData('text/plain', path);
              onDragStart();
            }}
            onDragEnd={onDragEnd}
          >
            <GripVertical size={14} aria-hidden />
          </span>
        )
      )}
      <NodeMenu quota={quota} obstacle={obstacle} {...menu} />
    </div>
  );
}

type MenuProps = Pick<Props, 'quota' | 'obstacle' | 'addObstacle' | 'onAction'>;

function NodeMenu({ quota, obstacle, addObstacle, onAction }: MenuProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  const whole = quota.depth === 0 ? t('deferred:quotas.isRoot') : '';
  const items: [NodeAction, string][] = [
    ['add', addObstacle],
    ['settings', obstacle],
    ['move', obstacle || whole],
    ['remove', obstacle || whole],
  ];
  return (
    <Menu position="bottom-start" width={250}>
      <Menu.Target>
        <ActionIcon size="sm" variant="subtle" color="gray" aria-label={t('deferred:quotas.actionsFor', { path: quota.path })}>
          <Ellipsis size={14} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {items.map(([action, why]) => (
          <Menu.Item
            key={action}
            aria-disabled={why !== ''}
            data-disabled={why !== '' || undefined}
            className={why ? (classes['off'] ?? '') : ''}
            closeMenuOnClick={why === ''}
            {...(action === 'remove' && !why ? { color: 'red' } : {})}
            onClick={() => why === '' && onAction(action)}
          >
            {t(`deferred:quotas.action.${action}`)}
            {why && <span className={classes['why']}>{why}</span>}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
