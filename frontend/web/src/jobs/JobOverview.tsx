/** The first look at a job: why it waits, cluster by cluster, its pods, its facts and its gang. */
import { useTranslation } from 'react-i18next';

import type { JobDetail } from '../api/types.ts';
import { Panel } from '../ui/Panel.tsx';
import { JobPods } from './JobPods.tsx';
import { JobSummary } from './JobSummary.tsx';
import { RoleTable } from './RoleTable.tsx';
import { VerdictTable } from './VerdictTable.tsx';
import { WhyWaiting } from './WhyWaiting.tsx';
import classes from './JobPage.module.css';

export function JobOverview({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const verdicts = job.reason?.clusters ?? [];
  return (
    <>
      {job.reason && <WhyWaiting job={job} reason={job.reason} />}
      <div className={classes['columns']}>
        <div className={classes['main']}>
          {verdicts.length > 0 && (
            <Panel title={t('job.verdicts')} flush>
              <VerdictTable verdicts={verdicts} />
            </Panel>
          )}
          <Panel title={t('job.pods')} flush>
            <JobPods id={job.id} />
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
