/** Jobs between two places: leaving a failed cluster, making room for others, or waiting out a failure. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './FleetPanels.module.css';
import { movesQuery } from './queries.ts';
import { reasonWords } from './words.ts';

export function Moves() {
  const { t, i18n } = useTranslation();
  const words = { t, language: i18n.language };
  const { data, error, refetch } = useQuery(movesQuery(useScope()));
  return (
    <Panel title={t('home.moves')}>
      <div className={classes['fill']}>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {!data && !error && <Skeleton height={110} />}
        {data?.count === 0 && <p className="cv-soft">{t('home.nothingMoves')}</p>}
        <ol className={classes['rows']}>
          {data?.results.map((job) => (
            <li key={job.id}>
              <Link to={`/jobs/${job.id}`}>{`${job.namespace}/${job.name}`}</Link>
              <span className="cv-soft" title={job.reason ? reasonWords(job.reason, job, words) : undefined}>
                {t(`jobState.${job.state}`)}
              </span>
            </li>
          ))}
        </ol>
        <Link to="/incidents" className={classes['more']}>
          {t('home.allMoves')}
        </Link>
      </div>
    </Panel>
  );
}
