/** The facts of a job in a list. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import type { Job } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import classes from './JobSummary.module.css';

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
        <Age since={job.created_at} ago />
      </Fact>
      <Fact name={t('job.started')}>{job.started_at ? <Age since={job.started_at} ago /> : '–'}</Fact>
      <Fact name={t('job.ran')}>
        {job.started_at ? <Age since={job.started_at} until={job.finished_at} /> : '–'}
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
