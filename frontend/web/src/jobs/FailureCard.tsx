/** Why the latest attempt that failed did: its class, what the failing rank said, where it ran, and the end of its log. */
import { Badge } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { Panel } from '../ui/Panel.tsx';
import { attemptsQuery } from './queries.ts';
import type { Attempt } from './types.ts';
import classes from './FailureCard.module.css';

export function FailureCard({ id, attempt }: { id: string; attempt: number }) {
  const { t, ready } = useTranslation('deferred', { useSuspense: false });
  const { data } = useQuery({ ...attemptsQuery(id), enabled: attempt > 0 });
  const failed = data?.results.filter(({ diagnosis }) => diagnosis).at(-1);
  if (!failed?.diagnosis || !ready) return null;
  const { category: kind, excerpt = [], message } = failed.diagnosis;
  return (
    <Panel title={t('failure.title', { number: failed.number })}>
      <p className={classes['message']}>
        <Badge variant="light" color={kind === 'infrastructure' || kind === 'preemption' ? 'yellow' : 'red'}>
          {t(`failure.class.${kind}`)}
        </Badge>{' '}
        {message}
      </p>
      <p className="cv-soft">{placeOf(failed).join(' · ')}</p>
      {excerpt.length > 0 && (
        <pre className={classes['excerpt']} aria-label={t('failure.excerpt')}>
          {excerpt.join('\n')}
        </pre>
      )}
    </Panel>
  );
}

function placeOf({ cluster, diagnosis }: Attempt): string[] {
  const { rank, where = '', pod = '', node = '', exit_code: code } = diagnosis ?? {};
  return [rank === undefined ? '' : `rank ${rank}`, where, pod, node, cluster, code === undefined ? '' : `exit code ${code}`].filter(Boolean);
}
