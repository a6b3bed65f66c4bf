/** What has happened to a job, newest first. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { EventText } from '../fleet/EventText.tsx';
import { Age } from '../ui/Age.tsx';
import { Failed } from '../ui/Message.tsx';
import { jobEventsQuery } from './queries.ts';
import classes from './JobEvents.module.css';

export function JobEvents({ id }: { id: string }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(jobEventsQuery(id));
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={80} aria-busy />;
  if (data.results.length === 0) return <span className="cv-soft">{t('job.noEvents')}</span>;
  const newestFirst = [...data.results].sort((a, b) => Date.parse(b.last_at) - Date.parse(a.last_at));
  return (
    <ol className={classes['events']}>
      {newestFirst.map((event) => (
        <li key={event.id} data-warning={event.type === 'Warning'}>
          <span className={classes['when']}>
            <Age since={event.last_at} />
          </span>
          <div>
            <strong>{event.reason}</strong>
            {event.count > 1 && <span className="cv-soft cv-numbers"> ×{event.count}</span>}
            <EventText event={event} />
          </div>
        </li>
      ))}
    </ol>
  );
}
