/** GPUs that jobs had over time, by queue or by model. */
import { useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'react-router';

import { useChangeParams } from '../scope/useScope.ts';
import { timesOf } from '../series/answer.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import { allocationLines } from './allocation.ts';
import type { Chosen } from './period.ts';
import { allocationQuery } from './queries.ts';
import { Choice, Report } from './Report.tsx';
import { useWords } from './useWords.ts';

const BY = ['queue', 'model'] as const;

export function Allocation({ chosen }: { chosen: Chosen }) {
  const { t } = useWords();
  const [params] = useSearchParams();
  const change = useChangeParams();
  const by = params.get('allocation') === 'model' ? 'model' : 'queue';
  const { data, error, refetch } = useQuery(allocationQuery(chosen, by));
  const lines = data && allocationLines(data, (name) => name || t(`hours.none.${by}`), t(`reports.others.${by}`));
  const controls = (
    <Choice
      label={t('hours.by')}
      value={by}
      values={BY.map((value) => ({ value, label: t(`reports.by.${value}`) }))}
      onChange={(next) => change({ allocation: next === 'queue' ? '' : next }, { replace: true })}
    />
  );
  return (
    <Report title={t('reports.allocation')} about={t(`reports.allocationAbout.${by}`)} controls={controls}>
      <SeriesChart
        label={t('reports.allocation')}
        error={error}
        onRetry={() => void refetch()}
        chart={data && lines && { times: timesOf(data), step: data.step, lines }}
      />
      {data?.is_cut && <p className="cv-soft">{t('reports.cut')}</p>}
    </Report>
  );
}
