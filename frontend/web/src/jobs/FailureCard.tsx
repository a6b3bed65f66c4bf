/** Why the latest attempt that failed did: its class, what the failing rank said, where it ran, and the end of its log. */
import { useQuery } from '@tanstack/react-query';
import type { TFunction } from 'i18next';
import { CircleX, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { Panel } from '../ui/Panel.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import { attemptsQuery } from './queries.ts';
import type { Attempt } from './types.ts';
import classes from './FailureCard.module.css';

export function FailureCard({ id, attempt }: { id: string; attempt: number }) {
  const { t, ready } = useTranslation('deferred', { useSuspense: false });
  const { data } = useQuery({ ...attemptsQuery(id), enabled: attempt > 0 });
  const failed = data?.results.filter(({ diagnosis }) => diagnosis).at(-1);
  if (!failed?.diagnosis || !ready) return null;
  const { category: kind, excerpt = [], message } = failed.diagnosis;
  const isOutside = kind === 'infrastructure' || kind === 'preemption';
  return (
    <Panel title={t('failure.title', { number: failed.number })}>
      <p className={classes['message']}>
        <StateBadge tone={isOutside ? 'warn' : 'bad'} icon={isOutside ? TriangleAlert : CircleX} label={t(`failure.class.${kind}`)} />{' '}
        {message}
      </p>
      <p className="cv-soft">{placeOf(failed, t).join(' · ')}</p>
      {excerpt.length > 0 && (
        <pre className={classes['excerpt']} aria-label={t('failure.excerpt')}>
          {excerpt.join('\n')}
        </pre>
      )}
    </Panel>
  );
}

function placeOf({ cluster, diagnosis }: Attempt, t: TFunction<'deferred'>): string[] {
  const { rank, where = '', pod = '', node = '', exit_code: code } = diagnosis ?? {};
  const [ofRank, ofCode] = [rank === undefined ? '' : t('failure.rank', { rank }), code === undefined ? '' : t('failure.exitCode', { code })];
  return [ofRank, where, pod, node, cluster, ofCode].filter(Boolean);
}
