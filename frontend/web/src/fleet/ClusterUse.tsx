/** How much the GPUs of a cluster compute over time, why some are not measured, and who leaves theirs idle. */
import { useQuery } from '@tanstack/react-query';
import { Gauge } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { timesOf, valuesOf } from '../series/answer.ts';
import { ChartPanel } from '../series/ChartPanel.tsx';
import { seriesQuery } from '../series/queries.ts';
import { useRange } from '../series/range.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import { Empty } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { IdleGpus } from './IdleGpus.tsx';
import { gpuReadingsQuery } from './queries.ts';

export function ClusterUse({ name }: { name: string }) {
  const { t } = useTranslation('deferred');
  const readings = useQuery(gpuReadingsQuery).data?.results.find(({ cluster }) => cluster === name);
  if (readings && readings.measured === 0 && readings.read_at === null && readings.message === '') {
    return (
      <Panel title={t('gpuUse.title')}>
        <Empty title={t('gpuUse.noneTitle')} icon={Gauge}>
          {t('gpuUse.noneInCluster')}
        </Empty>
      </Panel>
    );
  }
  return (
    <>
      <ChartPanel title={t('gpuUse.title')}>
        {readings?.message && (
          <div className="cv-stale">
            {t('map.readProblem', { answered: readings.answered, count: readings.exporters })} <ServerText text={readings.message} />
          </div>
        )}
        <Mean name={name} label={t('gpuUse.title')} />
      </ChartPanel>
      <IdleGpus cluster={name} />
    </>
  );
}

function Mean({ name, label }: { name: string; label: string }) {
  const { t } = useTranslation('deferred');
  const [range] = useRange();
  const { data, error, refetch } = useQuery(seriesQuery({ metric: 'utilization', by: 'cluster', name }, range));
  const line = data && { id: 'mean', label: t('gpuUse.cluster'), look: 'used' as const, values: valuesOf(data, 'utilization', name) };
  return (
    <SeriesChart
      label={label}
      error={error}
      onRetry={() => void refetch()}
      chart={data && line && { times: timesOf(data), step: data.step, lines: [line] }}
      format={percent}
      axis={percent}
    />
  );
}

const percent = (value: number) => `${String(Math.round(value))} %`;
