/** The tree at work: which resources are shown, the grid, the draft below it, and the history. */
import { Alert, Button } from '@mantine/core';
import { Download } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import type { QuotaTree } from '../api/types.ts';
import { useChangeParams } from '../scope/useScope.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { inOrder } from './amounts.ts';
import { commandsOfTree } from './commands.ts';
import { DraftPanel } from './DraftPanel.tsx';
import { HistoryPanel } from './HistoryPanel.tsx';
import { ImportButton } from './ImportButton.tsx';
import { Legend } from './Legend.tsx';
import { boundChange } from './draft.ts';
import { type Bound, flat } from './model.ts';
import { type Asked, NodeDialog } from './NodeDialog.tsx';
import { QuotaGrid } from './QuotaGrid.tsx';
import { ResourcePicker } from './ResourcePicker.tsx';
import { type Draft, useDraft } from './useDraft.ts';
import { usePreview } from './usePreview.ts';
import classes from './QuotaEditor.module.css';

export function QuotaEditor({ tree }: { tree: QuotaTree }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const draft = useDraft(tree);
  useRaised(draft);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [done, setDone] = useState('');
  const [resources, shown, show] = useResources(flat(draft.root));
  const { preview, looking, failed } = usePreview(tree.generation, draft.changes);
  const drafting = draft.changes.length > 0;
  const whole = tree.nodes[0]?.may_edit ?? false;

  const act = (path: string, action: Asked['action']) => {
    setDone('');
    if (action === 'remove') draft.make({ op: 'remove', path });
    else setAsked({ path, action });
  };

  return (
    <>
      <PageHeader
        title={t('deferred:quotas.title')}
        note={t('deferred:quotas.generation', { generation: tree.generation, who: tree.changed_by })}
      >
        <CopyAs commands={commandsOfTree()} />
        <ResourcePicker resources={resources} shown={shown} onShow={show} />
        <ImportButton tree={tree} obstacle={drafting ? t('deferred:quotas.draftFirst') : whole ? '' : t('deferred:quotas.mayNot')} onSaved={({ generation }) => setDone(t('deferred:quotas.saved', { generation }))} />
        <Button component="a" href="/api/v1/quota/tree/manifest/" size="xs" variant="default" leftSection={<Download size={14} />}>
          {t('deferred:quotas.export')}
        </Button>
      </PageHeader>
      <div role="status">
        {done && (
          <Alert color="green" mb="md" withCloseButton closeButtonLabel={t('common.close')} onClose={() => setDone('')}>
            {done}
          </Alert>
        )}
        {draft.lost > 0 && <Alert mb="md" color="yellow">{t('deferred:quotas.lost', { count: draft.lost })}</Alert>}
      </div>
      <div className={classes['panels']}>
        <Panel flush>
          <Legend />
          <QuotaGrid tree={tree} draft={draft} preview={preview} resources={shown} onAction={act} />
        </Panel>
        {drafting && (
          <div className={classes['draft']}>
          <DraftPanel
            draft={draft}
            preview={preview}
            looking={looking}
            failed={failed}
            onSaved={({ generation }) => setDone(t('deferred:quotas.saved', { generation }))}
          />
          </div>
        )}
        <HistoryPanel
          tree={tree}
          obstacle={drafting ? t('deferred:quotas.draftFirst') : whole ? '' : t('deferred:quotas.mayNot')}
          onReverted={({ generation }) => setDone(t('deferred:quotas.saved', { generation }))}
        />
      </div>
      {asked && <NodeDialog asked={asked} tree={tree} draft={draft} onClose={() => setAsked(null)} />}
    </>
  );
}

/** A draft begun elsewhere, as what would help a waiting job: in the address, once. */
function useRaised(draft: Draft): void {
  const [params] = useSearchParams();
  const change = useChangeParams();
  const raised = params.getAll('raise');
  useEffect(() => {
    if (raised.length === 0) return;
    for (const each of raised) {
      const [path, bound, resource, amount] = each.split(' ');
      const quota = flat(draft.root).find((one) => one.path === path);
      if (quota && resource && amount && (bound === 'min' || bound === 'max')) {
        draft.make(boundChange(quota, bound satisfies Bound, resource, amount));
      }
    }
    change({ raise: '' }, { replace: true });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once: the draft is the person's from then on
  }, []);
}

/** The resources of the tree, and those of them that are shown: kept in the address. */
function useResources(quotas: ReturnType<typeof flat>) {
  const [params] = useSearchParams();
  const change = useChangeParams();
  const resources = inOrder(quotas.flatMap(({ min, max }) => [...Object.keys(min), ...Object.keys(max)]));
  const asked = params.getAll('resource').filter((each) => resources.includes(each));
  const shown = asked.length > 0 ? asked : resources.slice(0, 1);
  const show = (next: string[]) => change({ resource: next }, { replace: true });
  return [resources, shown, show] as const;
}
