/** What one queue used over time, with all queues below it: within its min and borrowed, beside what it lent, its min and its max. */
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import { useChangeParams, useScope } from '../scope/useScope.ts';
import { timesOf } from '../series/answer.ts';
import { ChartPanel } from '../series/ChartPanel.tsx';
import { JobsOverTime } from '../series/JobsOverTime.tsx';
import { seriesQuery } from '../series/queries.ts';
import { useRange } from '../series/range.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import { quotaLines } from './overTime.ts';

export function UseOverTime({ paths }: { paths: string[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [params] = useSearchParams();
  const change = useChangeParams();
  const scope = useScope();
  const path = [params.get('of'), scope.queue, paths[0]].find((each) => each && paths.includes(each)) ?? '';
  const picker = (
    <Select
      size="xs"
      w={240}
      searchable
      allowDeselect={false}
      aria-label={t('deferred:quotas.column.queue')}
      value={path}
      onChange={(next) => change({ of: next ?? '' }, { replace: true })}
      data={paths}
    />
  );
  return (
    <>
      <ChartPanel title={t('chart.quota')} actions={picker}>
        <Use path={path} label={`${t('chart.quota')}: ${path}`} />
      </ChartPanel>
      <JobsOverTime of={{ queue: path }} />
    </>
  );
}

function Use({ path, label }: { path: string; label: string }) {
  const { t } = useTranslation('deferred');
  const [range] = useRange();
  const { data, error, refetch } = useQuery(
    seriesQuery({ metric: 'charged,borrowed,lent,min,max', by: 'queue', name: path }, range),
  );
  const lines = data && quotaLines(data, path).map((line) => ({ ...line, label: t(`quota.${line.id}`) }));
  return (
    <SeriesChart
      label={label}
      error={error}
      onRetry={() => void refetch()}
      chart={data && lines && { times: timesOf(data), step: data.step, lines }}
    />
  );
}
