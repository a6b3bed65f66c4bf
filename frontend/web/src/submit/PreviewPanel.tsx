/** What the fleet would do with the file as it stands: refuse it and say where, or place each job, or let it wait and say why. */
import { Skeleton } from '@mantine/core';
import { CircleCheck, Clock, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import { Problem } from '../api/problem.ts';
import type { ApplyPreview, Outlook } from '../api/types.ts';
import { amountsText } from '../fleet/resources.ts';
import { reasonWords, verdictWords } from '../fleet/words.ts';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import type { Tone } from '../ui/tones.ts';
import type { Mark } from './manifest.ts';
import classes from './PreviewPanel.module.css';

interface Props {
  preview: ApplyPreview | undefined;
  error: Error | null;
  broken: Mark[];
  busy: boolean;
}

export function PreviewPanel({ preview, error, broken, busy }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const faults = broken.length > 0 ? broken.map(({ line, message }) => t('deferred:submit.atLine', { line, message })) : faultsOf(error);
  return (
    <Panel title={t('deferred:submit.preview')}>
      <div className={classes['preview']} aria-live="polite" aria-busy={busy}>
        {faults.length > 0 && <Faults faults={faults} />}
        {faults.length === 0 && !preview && <Skeleton height={84} radius={6} />}
        {faults.length === 0 && preview && <Answer preview={preview} />}
      </div>
    </Panel>
  );
}

function faultsOf(error: Error | null): string[] {
  if (!error) return [];
  if (error instanceof Problem && error.fields.length > 0) return error.fields.map(({ field, detail }) => `${field} ${detail}`);
  return [error.message];
}

function Faults({ faults }: { faults: string[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <Finding tone="bad" title={t('deferred:submit.refused')}>
      <ul>
        {faults.map((fault) => (
          <li key={fault}>
            <ServerText text={fault} />
          </li>
        ))}
      </ul>
    </Finding>
  );
}

function Answer({ preview: { applied, jobs, policies, waiting } }: { preview: ApplyPreview }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const warnings = applied.flatMap((preview) => preview.warnings.map((warning) => `${preview.name}: ${warning}`));
  return (
    <>
      {jobs.map((job) => (
        <JobAnswer key={`${job.kind}/${job.namespace}/${job.name}`} job={job} />
      ))}
      {jobs.length > 0 && waiting > 0 && <p className="cv-soft">{t('deferred:submit.ahead', { count: waiting })}</p>}
      {jobs.length === 0 && <p>{applied.map(({ kind, name, action }) => t(`deferred:help.would.${action}`, { what: `${kind} ${name}` })).join(', ')}</p>}
      {policies.map((policy) => (
        <PolicyAnswer key={`${policy.kind}/${policy.namespace}/${policy.name}`} policy={policy} />
      ))}
      {warnings.map((warning) => (
        <div key={warning} className={classes['warning']}>
          <ServerText text={warning} />
        </div>
      ))}
    </>
  );
}

function JobAnswer({ job }: { job: Outlook }) {
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const words = { t, language: i18n.language };
  const placed = job.cluster !== '';
  const title = placed
    ? t('deferred:submit.wouldStart', { name: job.name, cluster: job.cluster })
    : t('deferred:submit.wouldWait', { name: job.name });
  return (
    <Finding tone={placed ? 'good' : 'warn'} title={title}>
      <p className="cv-soft">
        {t('deferred:submit.asks', { amounts: amountsText(job.total, i18n.language), queue: job.leaf || '–', policy: job.policy || '–' })}
      </p>
      {job.reason && <p>{reasonWords(job.reason, { ...job, cluster: job.cluster || null }, words)}</p>}
      <ul className={classes['clusters']}>
        {job.clusters.map((verdict) => (
          <li key={verdict.cluster} data-fits={verdict.fits ?? false}>
            <strong>{verdict.cluster}</strong> {verdictWords(verdict, words)}
          </li>
        ))}
      </ul>
    </Finding>
  );
}

/** Which jobs a policy would have, by name: a selector says little until it is seen what it selects. */
function PolicyAnswer({ policy: { name, count, jobs } }: { policy: ApplyPreview['policies'][number] }) {
  const { t } = useTranslation('deferred');
  if (count === 0) return <Finding tone="warn" title={t('submit.claimsNone', { name })}>{null}</Finding>;
  return (
    <Finding tone="good" title={t('submit.claims', { name, count })}>
      <ul className={classes['clusters']}>
        {jobs.map((job) => (
          <li key={`${job.namespace}/${job.name}`}>
            {job.namespace}/{job.name}
          </li>
        ))}
        {count > jobs.length && <li>{t('submit.claimsMore', { count: count - jobs.length })}</li>}
      </ul>
    </Finding>
  );
}

const ICONS = { good: CircleCheck, warn: Clock, bad: TriangleAlert };

function Finding({ tone, title, children }: { tone: Tone & keyof typeof ICONS; title: string; children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <div className={classes['finding']} data-tone={tone}>
      <Icon size={17} aria-hidden />
      <div>
        <h3>{title}</h3>
        {children}
      </div>
    </div>
  );
}
