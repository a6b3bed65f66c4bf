/** What is asked about one quota: the name of a new one below it, where it goes, or its settings. */
import { Modal } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import type { QuotaTree } from '../api/types.ts';
import { AddForm } from './AddForm.tsx';
import { type Nodes, obstacleToMove } from './grid.ts';
import { find, flat } from './model.ts';
import { MoveForm } from './MoveForm.tsx';
import type { NodeAction } from './QuotaName.tsx';
import { SettingsForm } from './SettingsForm.tsx';
import type { Draft } from './useDraft.ts';

export interface Asked {
  path: string;
  action: NodeAction;
}

interface Props {
  asked: Asked;
  tree: QuotaTree;
  draft: Draft;
  onClose: () => void;
}

export function NodeDialog({ asked: { path, action }, tree, draft, onClose }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { root, make } = draft;
  const quota = find(root, path);
  if (!quota || action === 'remove') return null;
  const nodes: Nodes = new Map(tree.nodes.map((node) => [node.path, node]));
  const goals = flat(root).filter((goal) => obstacleToMove(nodes, root, path, goal.path) === '');
  const done = (change: Parameters<typeof make>[0]) => {
    make(change);
    onClose();
  };
  return (
    <Modal opened onClose={onClose} title={t(`deferred:quotas.ask.${action}`, { path })} size={460} closeButtonProps={{ 'aria-label': t('common.close') }}>
      {action === 'add' && (
        <AddForm
          taken={quota.children.map(({ name }) => name)}
          onDone={(node) => done({ op: 'add', parent: path, node })}
          onClose={onClose}
        />
      )}
      {action === 'move' && (
        <MoveForm goals={goals.map((goal) => goal.path)} onDone={(parent) => done({ op: 'move', path, parent })} onClose={onClose} />
      )}
      {action === 'settings' && <SettingsForm quota={quota} onDone={(set) => done({ op: 'edit', path, set })} onClose={onClose} />}
    </Modal>
  );
}
