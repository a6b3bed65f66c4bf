/** The latest that happened in the fleet, in one line each. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import type { JobEvent } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './FleetPanels.module.css';
import { tickerQuery } from './queries.ts';
import { eventWords } from './words.ts';

export function Ticker() {
  const { t, i18n } = useTranslation();
  const words = { t, language: i18n.language };
  const { data, error, refetch } = useQuery(tickerQuery(useScope()));
  return (
    <Panel title={t('home.events')}>
      <div className={classes['fill']}>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {!data && !error && <Skeleton height={110} />}
        {data?.count === 0 && <p className="cv-soft">{t('job.noEvents')}</p>}
        <ol className={classes['ticker']}>
          {data?.results.map((event) => (
            <li key={event.id} data-type={event.type}>
              <Age since={event.last_at} ago />
              <p title={eventWords(event, words)}>
                <Link to={whereOf(event)}>{event.regarding.name}</Link> {eventWords(event, words)}
              </p>
            </li>
          ))}
        </ol>
        <Link to="/events" className={classes['more']}>
          {t('home.allEvents')}
        </Link>
      </div>
    </Panel>
  );
}

/** The page of what an event is about, as far as it has one. */
export function whereOf({ regarding: { kind, name, uid } }: JobEvent): string {
  if (kind === 'Cluster') return `/fleet/${encodeURIComponent(name)}`;
  if (kind === 'ElasticQuotaTree' || kind === 'Queue') return '/quotas';
  if (kind.endsWith('Policy')) return '/policies';
  return `/jobs/${uid}`;
}
