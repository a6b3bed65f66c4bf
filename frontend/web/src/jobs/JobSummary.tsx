/** The facts of a job in a list. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useQuery } from '@tanstack/react-query';

import type { Job } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { Term } from '../ui/Term.tsx';
import { useNow } from '../ui/clock.ts';
import { formatDuration } from '../ui/duration.ts';
import classes from './JobSummary.module.css';
import { timelineQuery } from './queries.ts';

export function JobSummary({ job }: { job: Job }) {
  const { t } = useTranslation();
  return (
    <dl className={classes['facts']}>
      <Fact name={t('jobs.column.cluster')}>
        {job.cluster ? <Link to={`/fleet/${encodeURIComponent(job.cluster)}`}>{job.cluster}</Link> : '–'}
      </Fact>
      <Fact name={t('job.queue')}>
        {job.leaf ? <Link to={`/quotas?node=${encodeURIComponent(job.leaf)}`}>{job.leaf}</Link> : '–'}
      </Fact>
      <Fact name={t('job.policy')}>{job.policy?.name ?? '–'}</Fact>
      <Fact name={t('jobs.column.gpus')}>{job.gpus}</Fact>
      <Fact name={t('jobs.column.priority')}>{job.priority}</Fact>
      <Fact name={t('job.attempt')}>{job.attempt}</Fact>
      <Fact name={t('job.submitted')}>
        <Age since={job.created_at} ago exact />
      </Fact>
      <Fact name={t('job.started')}>{job.started_at ? <Age since={job.started_at} ago /> : '–'}</Fact>
      <Fact name={<Term word="running">{t('job.ran')}</Term>}>
        <Ran id={job.id} />
      </Fact>
    </dl>
  );
}

/** As the bar above counts it: while all pods ran, moves and waits left out. */
function Ran({ id }: { id: string }) {
  const { i18n } = useTranslation();
  const { data } = useQuery(timelineQuery(id));
  const now = useNow(1_000);
  const total = data?.totals.find(({ owner }) => owner === 'running')?.seconds;
  if (!data || total === undefined) return '–';
  const open = data.slices.some((slice) => slice.open && slice.owner === 'running');
  const late = open ? Math.max(0, (now - Date.parse(data.now)) / 1000) : 0;
  return formatDuration(total + late, i18n.language);
}

function Fact({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
