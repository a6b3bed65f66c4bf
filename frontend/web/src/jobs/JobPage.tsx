/** One job: who has it in hand, why it waits, where it could go, its gang and pods, its log, events and manifest. */
import { Skeleton, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { useParams, useSearchParams } from 'react-router';

import type { JobDetail } from '../api/types.ts';
import { useChangeParams, useGo } from '../scope/useScope.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOf } from './commands.ts';
import { JobActions } from './JobActions.tsx';
import { JobBadge } from './JobBadge.tsx';
import { JobEvents } from './JobEvents.tsx';
import { JobLogs } from './JobLogs.tsx';
import { JobOverview } from './JobOverview.tsx';
import { JobPlacement } from './JobPlacement.tsx';
import { JobTimeline } from './JobTimeline.tsx';
import { jobQuery } from './queries.ts';
import classes from './JobPage.module.css';

const JobYaml = lazy(async () => ({ default: (await import('./JobYaml.tsx')).JobYaml }));
const TABS = ['overview', 'placement', 'logs', 'events', 'yaml'] as const;

export default function JobPage() {
  const go = useGo();
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
  return (
    <>
      <PageHeader title={job.name} note={`${job.namespace} · ${job.kind}`}>
        <JobBadge state={job.state} />
        <CopyAs commands={commandsOf(job)} />
        <JobActions job={job} onDeleted={() => go('/jobs')} />
      </PageHeader>
      <JobTimeline id={id} />
      <JobTabs job={job} />
    </>
  );
}

function JobTabs({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const [params] = useSearchParams();
  const change = useChangeParams();
  const tab = TABS.find((name) => name === params.get('tab')) ?? 'overview';
  return (
    <Tabs
      value={tab}
      keepMounted={false}
      onChange={(next) => change({ tab: next && next !== 'overview' ? next : '' }, { replace: true })}
    >
      <Tabs.List aria-label={t('job.tabs')} className={classes['tabs']}>
        {TABS.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {t(`job.tab.${name}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value="overview">
        <JobOverview job={job} />
      </Tabs.Panel>
      <Tabs.Panel value="placement">
        <JobPlacement id={job.id} />
      </Tabs.Panel>
      <Tabs.Panel value="logs">
        <JobLogs job={job} />
      </Tabs.Panel>
      <Tabs.Panel value="events">
        <Panel title={t('job.events')}>
          <JobEvents id={job.id} />
        </Panel>
      </Tabs.Panel>
      <Tabs.Panel value="yaml">
        <Suspense fallback={<Skeleton height={320} aria-busy />}>
          <JobYaml job={job} />
        </Suspense>
      </Tabs.Panel>
    </Tabs>
  );
}
