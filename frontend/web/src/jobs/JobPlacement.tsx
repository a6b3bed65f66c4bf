/** Where the job could go: each cluster with its score and what stands in its way, now and for each attempt that was. */
import { Select, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { PlacementTable, type Candidate } from './PlacementTable.tsx';
import { attemptsQuery, explainQuery } from './queries.ts';
import type { Attempt } from './types.ts';
import classes from './JobPlacement.module.css';

const NOW = 'now';

export function JobPlacement({ id }: { id: string }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(NOW);
  const explained = useQuery(explainQuery(id));
  const attempts = useQuery(attemptsQuery(id));
  if (explained.error && !explained.data) return <Failed error={explained.error} onRetry={() => void explained.refetch()} />;
  if (!explained.data || !attempts.data) return <Skeleton height={240} aria-busy />;
  const past = attempts.data.results;
  const attempt = past.find(({ number }) => String(number) === shown);
  const options = past.map(({ number, cluster }) => ({
    value: String(number),
    label: `${t('job.attemptNumber', { number })} · ${cluster}`,
  }));
  return (
    <Panel title={t('job.tab.placement')} flush>
      <div className={classes['head']}>
        <Select
          size="xs"
          w={260}
          aria-label={t('job.decision')}
          allowDeselect={false}
          value={shown}
          onChange={(value) => setShown(value ?? NOW)}
          data={[{ value: NOW, label: t('job.lookedAt') }, ...options.reverse()]}
        />
        <div className="cv-soft"><ServerText text={attempt ? textOf(attempt) : explained.data.message} /></div>
      </div>
      <PlacementTable candidates={attempt ? replayed(attempt) : explained.data.clusters} />
    </Panel>
  );
}

function textOf({ outcome, cause, message }: Attempt): string {
  return [cause ? `${outcome} (${cause})` : outcome, message].filter(Boolean).join(': ');
}

function replayed({ cluster: chosen, explanation }: Attempt): Candidate[] {
  return explanation.map(({ cluster, code, fits = false, message, missing = {}, score = 0 }) => ({
    cluster,
    code,
    fits,
    message,
    missing,
    score,
    chosen: cluster === chosen,
    never_fits: false,
    score_parts: {},
  }));
}
