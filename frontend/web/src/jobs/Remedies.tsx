/** What would let a job start, by the gate it stands at: each with a button for whoever may, and the role for the others. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ArrowRight, Lightbulb, Pause } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { useMay } from '../api/me.ts';
import type { JobDetail } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import { draftOf, helpWords, leads, placeOfHelp } from './help.ts';
import { explainQuery } from './queries.ts';
import { RemedyDialog } from './RemedyDialog.tsx';
import type { Change, Step } from './types.ts';
import classes from './WhyWaiting.module.css';

const BulkDialog = lazy(async () => ({ default: (await import('./BulkDialog.tsx')).BulkDialog }));

export function Remedies({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const { data } = useQuery(explainQuery(job.id));
  const changes = data?.changes ?? [];
  if (changes.length === 0) return null;
  return (
    <div className={classes['remedies']}>
      <h3>{t('job.wouldHelp')}</h3>
      <ul aria-label={t('job.wouldHelp')}>
        {changes.map((change) => (
          <li key={change.kind + change.message}>
            <Lightbulb size={14} aria-hidden />
            {change.kind === 'AllOf' ? <Together change={change} job={job} /> : <Remedy step={change} job={job} />}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** None of these helps alone: they are joined by a word, not by a line. */
function Together({ change, job }: { change: Change; job: JobDetail }) {
  const { t } = useTranslation();
  const raised = change.steps.filter(({ kind }) => kind === 'RaiseQuota');
  return (
    <div className={classes['together']}>
      {change.steps.map((step, place) => (
        <div key={step.kind + step.message}>
          {place > 0 && <strong>{t('help.and')}</strong>}
          <Remedy step={step} job={job} draft={raised.length > 1 && step.kind === 'RaiseQuota' ? raised : undefined} />
        </div>
      ))}
    </div>
  );
}

function Remedy({ step, job, draft }: { step: Step; job: JobDetail; draft?: Step[] | undefined }) {
  const { t, i18n } = useTranslation();
  return (
    <>
      <span>{helpWords(step, job, { t, language: i18n.language })}</span>
      <Act step={step} job={job} draft={draft} />
      {!step.allowed && <span className="cv-soft">{t('help.needs', { role: step.needs })}</span>}
    </>
  );
}

function Act({ step, job, draft }: { step: Step; job: JobDetail; draft: Step[] | undefined }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState(false);
  if (step.kind === 'WaitForJobs') return <SuspendThem step={step} />;
  if (leads(step)) {
    const to = draft && step === draft[0] ? draftOf(draft) : draft ? '' : placeOfHelp(step, job);
    if (!to || to === '/jobs/') return null;
    return (
      <Button component={Link} to={to} size="compact-xs" variant="default" rightSection={<ArrowRight size={12} />}>
        {t(`helpAction.${step.kind}`, { name: step.cluster })}
      </Button>
    );
  }
  if (step.kind !== 'OpenQueue' && step.kind !== 'Uncordon' && step.kind !== 'Resume') return null;
  return (
    <>
      <ActionButton
        size="compact-xs"
        variant="default"
        obstacle={step.allowed ? '' : t('help.needs', { role: step.needs })}
        onClick={() => setAsked(true)}
      >
        {t(`helpAction.${step.kind}`, { name: step.cluster })}
      </ActionButton>
      {asked && <RemedyDialog step={step} kind={step.kind} job={job} onClose={() => setAsked(false)} />}
    </>
  );
}

/** Those whose end is waited for, as links; and, for whoever may, to suspend as many as it takes. */
function SuspendThem({ step }: { step: Step }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState(false);
  const may = useMay('suspend');
  const seen = step.held_by.filter(({ id }) => id);
  if (seen.length === 0) return null;
  return (
    <>
      {seen.map(({ id, name }) => (
        <Link key={id} to={`/jobs/${id}`} aria-label={t('help.open', { name })}>
          {name.split('/')[1]}
        </Link>
      ))}
      {seen.length >= step.count && (
        <ActionButton
          size="compact-xs"
          variant="default"
          leftSection={<Pause size={12} aria-hidden />}
          obstacle={may ? '' : t('help.needs', { role: 'editor' })}
          onClick={() => setAsked(true)}
        >
          {t('help.suspend', { count: step.count, name: seen[0]?.name })}
        </ActionButton>
      )}
      {asked && (
        <Suspense>
          <BulkDialog action="suspend" ids={seen.slice(0, step.count).map(({ id }) => id)} onClose={() => setAsked(false)} />
        </Suspense>
      )}
    </>
  );
}
