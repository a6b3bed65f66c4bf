/** What would let a job start, by the gate it stands at: each with a button for users who may, and the role needed for the others. */
import { useQuery } from '@tanstack/react-query';
import { Lightbulb } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { JobDetail } from '../api/types.ts';
import { helpWords, needsWords } from './help.ts';
import { explainQuery } from './queries.ts';
import { RemedyAct } from './RemedyAct.tsx';
import type { Change, Step } from './types.ts';
import classes from './WhyWaiting.module.css';

export function Remedies({ job }: { job: JobDetail }) {
  const { t } = useTranslation(['translation', 'deferred']);
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

/** None of these helps alone: they are joined by a word, not by a line; their limits are one draft. */
function Together({ change, job }: { change: Change; job: JobDetail }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const limits = change.steps.filter(({ kind }) => kind === 'RaiseQuota');
  return (
    <div className={classes['together']}>
      {change.steps.map((step, place) => (
        <div key={step.kind + step.message}>
          {place > 0 && <strong>{t('deferred:help.and')}</strong>}
          <Remedy step={step} job={job} limits={step === limits[0] ? limits : step.kind === 'RaiseQuota' ? [] : [step]} />
        </div>
      ))}
    </div>
  );
}

function Remedy({ step, job, limits = [step] }: { step: Step; job: JobDetail; limits?: Step[] }) {
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const needs = needsWords(step, t);
  return (
    <>
      <span>{helpWords(step, job, { t, language: i18n.language })}</span>
      <RemedyAct step={step} job={job} limits={limits} obstacle={needs} />
      {needs && <span className="cv-soft">{needs}</span>}
    </>
  );
}
