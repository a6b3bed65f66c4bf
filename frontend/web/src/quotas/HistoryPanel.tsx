/** Every generation of the tree: who, when, why, what it changed, and the way back to it in one step. */
import { Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { QuotaRevision, QuotaSaved, QuotaTree } from '../api/types.ts';
import { Age } from '../ui/Age.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { Failed } from '../ui/Message.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import { commandsToRevert } from './commands.ts';
import { DifferenceList } from './DifferenceList.tsx';
import { fieldsOf } from './draft.ts';
import { generationQuery, historyQuery, useRevert } from './queries.ts';
import classes from './HistoryPanel.module.css';

const PAGE_SIZE = 10;

interface Props {
  tree: QuotaTree;
  /** Why nothing can be reverted now; empty when it can. */
  obstacle: string;
  onReverted: (saved: QuotaSaved) => void;
}

export function HistoryPanel({ tree, obstacle, onReverted }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [page, setPage] = useState(1);
  const [asked, setAsked] = useState<QuotaRevision | null>(null);
  const { data, error, refetch } = useQuery(historyQuery(page));
  return (
    <Panel title={t('deferred:quotas.history')} flush>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      <ol className={classes['list']} aria-busy={!data && !error}>
        {data?.results.map((revision) => (
          <Entry
            key={revision.generation}
            revision={revision}
            current={revision.generation === tree.generation}
            obstacle={obstacle}
            onRevert={() => setAsked(revision)}
          />
        ))}
      </ol>
      {data && data.count > PAGE_SIZE && <Pager page={page} pageSize={PAGE_SIZE} count={data.count} onPage={setPage} />}
      {asked && <Ask tree={tree} to={asked.generation} onClose={() => setAsked(null)} onReverted={onReverted} />}
    </Panel>
  );
}

interface EntryProps {
  revision: QuotaRevision;
  current: boolean;
  obstacle: string;
  onRevert: () => void;
}

function Entry({ revision, current, obstacle, onRevert }: EntryProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [open, setOpen] = useState(false);
  const { generation, by, at, comment, source } = revision;
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <b>{generation}</b>
          <span>{by}</span>
          <span className={classes['comment']}>{comment}</span>
          {current && <span className={classes['current']}>{t('deferred:quotas.inForce')}</span>}
          <span className="cv-soft">{source}</span>
          <span className="cv-soft">
            <Age since={at} />
          </span>
        </summary>
        {open && <Detail generation={generation} />}
        {open && !current && (
          <Group gap="xs" mt={6}>
            <Button
              size="xs"
              variant="default"
              data-disabled={obstacle !== '' || undefined}
              aria-disabled={obstacle !== ''}
              title={obstacle || undefined}
              onClick={() => obstacle === '' && onRevert()}
            >
              {t('deferred:quotas.revert', { generation })}
            </Button>
            {obstacle && <span className="cv-soft">{obstacle}</span>}
          </Group>
        )}
      </details>
    </li>
  );
}

function Detail({ generation }: { generation: number }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data, error } = useQuery(generationQuery(generation));
  if (error) return <div role="alert"><ErrorText error={error} /></div>;
  if (!data) return <p className="cv-soft">{t('deferred:quotas.looking')}</p>;
  const found = data.differences.flatMap(fieldsOf);
  return found.length > 0 ? <DifferenceList differences={found} /> : <p className="cv-soft">{t('deferred:quotas.noDifference')}</p>;
}

interface AskProps {
  tree: QuotaTree;
  to: number;
  onClose: () => void;
  onReverted: (saved: QuotaSaved) => void;
}

function Ask({ tree, to, onClose, onReverted }: AskProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { mutate, isPending, error } = useRevert((saved) => {
    onClose();
    onReverted(saved);
  });
  const body = { to, generation: tree.generation, comment: t('deferred:quotas.revertComment', { generation: to }) };
  return (
    <ConfirmDialog
      title={t('deferred:quotas.askRevert', { generation: to })}
      body={t('deferred:quotas.askRevertBody')}
      action={t('deferred:quotas.revert', { generation: to })}
      commands={commandsToRevert(body)}
      pending={isPending}
      error={error}
      onConfirm={() => mutate(body)}
      onClose={onClose}
    />
  );
}
