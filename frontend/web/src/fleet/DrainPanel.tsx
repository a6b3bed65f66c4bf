/** How far the jobs of a cluster that has to be left have left it, and how fast they do: the same numbers as the command line. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CircleCheck } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Evictions } from '../api/types.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './DrainPanel.module.css';
import { evictionsQuery } from './queries.ts';

export function DrainPanel({ name }: { name: string }) {
  const { t, ready } = useTranslation('deferred', { useSuspense: false });
  const { data, error, refetch } = useQuery(evictionsQuery(name));
  if (!ready) return <Skeleton height={120} radius={8} aria-busy />;
  return (
    <Panel title={t('drain.title')}>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={64} aria-busy />}
      {data && <Progress progress={data} />}
    </Panel>
  );
}

function Progress({ progress }: { progress: Evictions }) {
  const { t } = useTranslation('deferred');
  const { jobs_left: jobs, copies_left: copies } = progress;
  if (jobs === 0 && copies === 0) {
    return (
      <Empty title={t('drain.doneTitle', { name: progress.cluster })} icon={CircleCheck}>
        {t('drain.doneBody')}
      </Empty>
    );
  }
  return (
    <>
      <dl className={classes['facts']}>
        <Fact name={t('drain.jobsLeft')} value={jobs} />
        <Fact name={t('drain.copiesLeft')} value={copies} />
        <Fact name={t('drain.pace')} value={progress.left_last_minute} />
      </dl>
      <p className={classes['pace']} role="status">
        {jobs === 0
          ? t('drain.removing')
          : `${t('drain.limit', { count: progress.per_minute })} · ${t('drain.minutes', { count: progress.minutes_left })}`}
      </p>
    </>
  );
}

function Fact({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
