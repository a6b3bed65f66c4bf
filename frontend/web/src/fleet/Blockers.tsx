/** What keeps jobs waiting, the most frequent first; each line is a door to the jobs it is about. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './FleetPanels.module.css';
import { blockersQuery } from './queries.ts';
import { isReasonCode } from './reasons.ts';

const SHOWN = 6;

export function Blockers() {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(blockersQuery(useScope()));
  return (
    <Panel title={t('home.blockers')}>
      <div className={classes['fill']}>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {!data && !error && <Skeleton height={110} />}
        {data?.results.length === 0 && <p className="cv-soft">{t('home.nobodyWaits')}</p>}
        <ol className={classes['rows']}>
          {data?.results.slice(0, SHOWN).map(({ value, count, gpus }) => (
            <li key={value}>
              <Link to={`/jobs?state=Queued&reason=${encodeURIComponent(value)}`}>
                {isReasonCode(value) ? t(`why.${value}`) : value}
              </Link>
              <span className="cv-numbers">
                <strong>{t('jobs.count', { count })}</strong> {t('home.gpusAsked', { count: gpus })}
              </span>
            </li>
          ))}
        </ol>
      </div>
    </Panel>
  );
}
