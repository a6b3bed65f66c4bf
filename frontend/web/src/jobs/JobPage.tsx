/** One job: where it stands and why, its gang, its pods, and what has happened to it. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useNavigate, useParams } from 'react-router';

import { Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { JobActions } from './JobActions.tsx';
import { JobBadge } from './JobBadge.tsx';
import { JobEvents } from './JobEvents.tsx';
import { JobPods } from './JobPods.tsx';
import { JobReason } from './JobReason.tsx';
import { JobSummary } from './JobSummary.tsx';
import { jobQuery } from './queries.ts';
import { RoleTable } from './RoleTable.tsx';
import { VerdictTable } from './VerdictTable.tsx';
import classes from './JobPage.module.css';

export default function JobPage() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { id = '' } = useParams();
  const { data: job, error, refetch } = useQuery(jobQuery(id));
  if (error && !job) {
    return (
      <Panel>
        <Failed error={error} onRetry={() => void refetch()} />
      </Panel>
    );
  }
  if (!job) return <Skeleton height={320} radius={8} aria-busy />;
  const verdicts = job.reason?.clusters ?? [];
  return (
    <>
      <PageHeader title={job.name} note={`${job.namespace} · ${job.kind}`}>
        <JobBadge state={job.state} />
        <JobActions job={job} onDeleted={() => void navigate('/jobs')} />
      </PageHeader>
      {job.reason && <JobReason reason={job.reason} state={job.state} />}
      <div className={classes['columns']}>
        <div className={classes['main']}>
          {verdicts.length > 0 && (
            <Panel title={t('job.verdicts')} flush>
              <VerdictTable verdicts={verdicts} />
            </Panel>
          )}
          <Panel title={t('job.pods')} flush>
            <JobPods id={id} />
          </Panel>
          <Panel title={t('job.events')}>
            <JobEvents id={id} />
          </Panel>
        </div>
        <div className={classes['main']}>
          <Panel title={t('job.summary')}>
            <JobSummary job={job} />
          </Panel>
          <Panel title={t('job.gang')} flush>
            <RoleTable roles={job.roles} />
          </Panel>
        </div>
      </div>
    </>
  );
}
