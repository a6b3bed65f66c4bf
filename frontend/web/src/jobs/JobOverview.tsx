/** The first look at a job: why it waits, cluster by cluster, its pods, its facts and its gang. */
import { Skeleton } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';

import type { JobDetail } from '../api/types.ts';
import { Panel } from '../ui/Panel.tsx';
import { FailureCard } from './FailureCard.tsx';
import { OtherCopies } from './OtherCopies.tsx';
import { JobProgress } from './JobProgress.tsx';
import { JobPods } from './JobPods.tsx';
import { JobSummary } from './JobSummary.tsx';
import { RoleTable } from './RoleTable.tsx';
import { Verdicts } from './VerdictTable.tsx';
import { WhyWaiting } from './WhyWaiting.tsx';
import classes from './JobPage.module.css';

const Relations = lazy(async () => ({ default: (await import('./Relations.tsx')).Relations }));
const JobGpuUse = lazy(async () => ({ default: (await import('./JobGpuUse.tsx')).JobGpuUse }));
const JobElastic = lazy(async () => ({ default: (await import('./JobElastic.tsx')).JobElastic }));

export function JobOverview({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  return (
    <>
      <OtherCopies copies={job.other_copies} />
      {job.reason && <WhyWaiting job={job} reason={job.reason} />}
      <div className={classes['columns']}>
        <div className={classes['main']}>
          <Verdicts job={job} />
          <FailureCard id={job.id} attempt={job.attempt} />
          {job.size && job.attempt > 0 && (
            <Suspense>
              <JobElastic job={job} />
            </Suspense>
          )}
          <Panel title={t('job.pods')} flush>
            <JobPods job={job} />
          </Panel>
          {job.gpus > 0 && job.state === 'Running' && (
            <Suspense fallback={<Skeleton height={330} radius={8} aria-busy />}>
              <JobGpuUse job={job} />
            </Suspense>
          )}
          <Suspense fallback={<Skeleton height={120} radius={8} aria-busy />}>
            <Relations job={job} />
          </Suspense>
        </div>
        <div className={classes['main']}>
          {job.progress && <JobProgress progress={job.progress} running={job.state === 'Running'} />}
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
