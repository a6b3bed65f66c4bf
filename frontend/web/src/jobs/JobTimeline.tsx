/** One bar from submitted to done: who had the job in hand, and how long each of them had it. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { Failed } from '../ui/Message.tsx';
import { Term } from '../ui/Term.tsx';
import { useNow } from '../ui/clock.ts';
import { formatDuration } from '../ui/duration.ts';
import { timelineQuery } from './queries.ts';
import type { Slice, Timeline } from './types.ts';
import classes from './JobTimeline.module.css';

const TICK_MS = 1_000;

export function JobTimeline({ id }: { id: string }) {
  const { data, error, refetch } = useQuery(timelineQuery(id));
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={58} aria-busy />;
  return <Bar timeline={data} />;
}

function Bar({ timeline }: { timeline: Timeline }) {
  const { t, i18n } = useTranslation();
  const now = useNow(TICK_MS);
  const late = timeline.ended_at ? 0 : Math.max(0, (now - Date.parse(timeline.now)) / 1000);
  const lasts = (slice: Slice) => slice.seconds + (slice.open ? late : 0);
  const duration = (seconds: number) => formatDuration(seconds, i18n.language);
  const open = timeline.slices.find((slice) => slice.open);
  const totals = timeline.totals.map(({ owner, seconds }) => ({
    owner,
    text: duration(seconds + (open?.owner === owner ? late : 0)),
  }));
  const summary = totals.map(({ owner, text }) => t('job.barSummary', { owner: t(`job.owner.${owner}`), time: text }));
  return (
    <section className={classes['timeline']} aria-label={t('job.bar')}>
      <div className={classes['bar']} role="img" aria-label={summary.join(', ')}>
        {timeline.slices.map((slice) => (
          <span
            key={slice.starts_at + slice.owner}
            data-owner={slice.owner}
            data-open={slice.open}
            style={{ flexGrow: Math.max(lasts(slice), 0.001) }}
            title={`${t(`job.owner.${slice.owner}`)}${slice.cluster ? ` · ${slice.cluster}` : ''}: ${duration(lasts(slice))}`}
          />
        ))}
      </div>
      <ul className={classes['legend']}>
        {totals.map(({ owner, text }) => (
          <li key={owner}>
            <i data-owner={owner} aria-hidden /> {owner === 'running' ? <Term word="running">{t('job.owner.running')}</Term> : t(`job.owner.${owner}`)} <b className="cv-numbers">{text}</b>
          </li>
        ))}
      </ul>
    </section>
  );
}
