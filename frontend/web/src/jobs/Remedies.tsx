/** What would let a waiting job start, as the server tried it out; each with the way to the page where it is done. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ArrowRight, Lightbulb } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { JobDetail, Reason } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { explainQuery } from './queries.ts';
import type { Change } from './types.ts';
import classes from './WhyWaiting.module.css';

const QUOTA = new Set(['QuotaExceeded', 'MaxJobsReached', 'QueueHeld', 'NoQuotaForNamespace', 'WaitingForReclaim']);

export function Remedies({ job, reason }: { job: JobDetail; reason: Reason }) {
  const { t } = useTranslation();
  const { data } = useQuery(explainQuery(job.id));
  const changes = data?.changes ?? [];
  const raised = changes.some(({ kind }) => kind === 'RaiseQuota');
  const path = reason.quota?.path ?? '';
  if (changes.length === 0 && !QUOTA.has(reason.code)) return null;
  return (
    <div className={classes['remedies']}>
      <h3>{t('job.wouldHelp')}</h3>
      <ul>
        {changes.map((change) => (
          <li key={change.kind + change.message}>
            <Lightbulb size={14} aria-hidden />
            <span>{change.message}</span>
            <Way to={wayTo(change)} label={labelOf(change)} name={change.cluster} />
          </li>
        ))}
        {!raised && QUOTA.has(reason.code) && (
          <li>
            <Lightbulb size={14} aria-hidden />
            <span>{reason.quota?.message ?? reason.message}</span>
            <Way to={quotaOf(path)} label="quota" name="" />
          </li>
        )}
      </ul>
    </div>
  );
}

type Label = 'quota' | 'cluster' | 'jobs' | 'manifest';

function Way({ to, label, name }: { to: string; label: Label; name: string }) {
  const { t } = useTranslation();
  if (!to) return null;
  return (
    <Button component={Link} to={to} size="compact-xs" variant="default" rightSection={<ArrowRight size={12} />}>
      {t(`job.open.${label}`, { name })}
    </Button>
  );
}

function wayTo({ kind, cluster, path }: Change): string {
  const ways: Record<Change['kind'], string> = {
    WaitUntil: '',
    Uncordon: clusterAt(cluster),
    AddNodes: clusterAt(cluster),
    WaitForJobs: `/jobs?state=Running&cluster=${encodeURIComponent(cluster)}`,
    Tolerate: '?tab=yaml',
    Select: '?tab=yaml',
    RaiseQuota: quotaOf(path),
  };
  return ways[kind];
}

function labelOf({ kind }: Change): Label {
  if (kind === 'RaiseQuota') return 'quota';
  if (kind === 'WaitForJobs') return 'jobs';
  return kind === 'Tolerate' || kind === 'Select' ? 'manifest' : 'cluster';
}

const clusterAt = (name: string) => `/fleet/${encodeURIComponent(name)}`;
const quotaOf = (path: string) => `/quotas?node=${encodeURIComponent(path)}`;
