/** Why a job is not running: one reason in plain words, the gates, who is ahead, when it may start, and what would help. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Suspense } from 'react';
import { useTranslation } from 'react-i18next';

import type { JobDetail, Reason } from '../api/types.ts';
import { reasonWords } from '../fleet/words.ts';
import { ServerText } from '../ui/ServerText.tsx';
import { GateLadder } from './GateLadder.tsx';
import { queueUnitQuery, timelineQuery } from './queries.ts';
import { Remedies } from './Remedies.tsx';
import { STATES } from './states.ts';
import classes from './WhyWaiting.module.css';

export function WhyWaiting({ job, reason }: { job: JobDetail; reason: Reason }) {
  const { t, i18n } = useTranslation();
  const { icon: Icon, tone } = STATES[job.state];
  const timeline = useQuery(timelineQuery(job.id));
  const waits = job.state === 'Queued' || job.state === 'Moving';
  const helped = job.finished_at === null && job.state !== 'Running';
  return (
    <section className={classes['why']} data-tone={tone} aria-label={t('job.why')}>
      <Icon size={18} aria-hidden />
      <div className={classes['body']}>
        <p className={classes['message']}>{reasonWords(reason, job, { t, language: i18n.language })}</p>
        <Said text={reason.message} />
        <span className="cv-mono">{reason.code}</span>
        {timeline.data ? <GateLadder gates={timeline.data.gates} /> : <Skeleton height={24} width={420} />}
        {waits && job.leaf !== '' && reason.code !== 'NeverFits' && <Place id={job.id} />}
        <Suspense>{helped && <Remedies job={job} />}</Suspense>
      </div>
    </section>
  );
}

/** The scheduler's own sentence, whose numbers are more than the headline has room for. */
function Said({ text }: { text: string }) {
  const { t } = useTranslation();
  return (
    <details className="cv-raw">
      <summary>{t('common.details')}</summary>
      <span lang="en">{text}</span>
    </details>
  );
}

/** Its place in its queue, and a guess with what it rests on. */
function Place({ id }: { id: string }) {
  const { t, i18n } = useTranslation();
  const { data } = useQuery(queueUnitQuery(id));
  if (!data) return <Skeleton height={38} width={320} />;
  const { position, queue, ahead, estimate } = data;
  const time = estimate && new Date(estimate.starts_at).toLocaleString(i18n.language, { timeStyle: 'short', dateStyle: 'medium' });
  return (
    <div className={classes['place']}>
      {position !== null && (
        <p>
          <strong>{t('job.position', { position, queue })}</strong> · {ahead ? t('job.behind', { ahead }) : t('job.first')}
        </p>
      )}
      {estimate && (
        <p>
          {t('job.estimate', { time })} <span className="cv-soft">· {i18n.language === 'en' ? t('job.basis', { basis: estimate.basis }) : <ServerText text={estimate.basis} />}</span>
        </p>
      )}
    </div>
  );
}
