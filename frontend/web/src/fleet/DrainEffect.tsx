/** What a drain would do, by name, as the next scheduling cycle says. Asked of the scheduler and not estimated here. */
import { Button, Skeleton } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import { CircleCheck } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { WhatIf } from '../api/types.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './ClusterPage.module.css';
import { OutcomeTable } from './OutcomeTable.tsx';

interface Props {
  answer: UseQueryResult<WhatIf>;
  title: string;
  /** Where no job leaves. */
  empty: { title: string; body: string };
  /** What is to be known beside the list, given how many jobs of it leave, and how many more that may not be read. */
  notes: (leaving: number, hidden: number) => string[];
}

export function DrainEffect({ answer: { data, error, isFetching, refetch }, title, empty, notes }: Props) {
  const { t } = useTranslation('deferred');
  if (!data && error) {
    return (
      <Panel title={title}>
        <Failed error={error} onRetry={() => void refetch()} />
      </Panel>
    );
  }
  if (!data) return <Skeleton height={160} radius={8} aria-busy />;
  const leaving = data.differences.filter(({ before }) => before.outcome === 'Runs');
  const waiting = leaving.filter(({ after }) => after.outcome === 'Waits');
  const others = data.differences.filter(({ before }) => before.outcome !== 'Runs');
  const shown = notes(leaving.length, data.hidden_leaving);
  const actions = (
    <Button size="compact-xs" variant="default" loading={isFetching} onClick={() => void refetch()}>
      {t('drain.again')}
    </Button>
  );
  return (
    <>
      <Panel title={title} actions={actions} flush={leaving.length > 0}>
        {leaving.length === 0 && shown.length === 0 && (
          <Empty title={empty.title} icon={CircleCheck}>
            {empty.body}
          </Empty>
        )}
        {leaving.length > 0 && (
          <p className={classes['note']}>
            {t('drain.leaves', { count: leaving.length })}
            {waiting.length > 0 && ` ${t(waiting.length === leaving.length ? 'drain.allWait' : 'drain.waits', { count: waiting.length })}`}
          </p>
        )}
        {shown.map((note) => (
          <p key={note} className={classes['note']}>
            {note}
          </p>
        ))}
        {leaving.length > 0 && <OutcomeTable caption={title} differences={leaving} />}
      </Panel>
      {others.length > 0 && (
        <Panel title={t('drain.others')} flush>
          <OutcomeTable caption={t('drain.others')} differences={others} />
        </Panel>
      )}
    </>
  );
}
