/** GPUs of the fleet over time, or of the cluster in scope: used, held and free, apart from them what cannot be reached, and when. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { useScope } from '../scope/useScope.ts';
import { ChartPanel } from '../series/ChartPanel.tsx';
import { timesOf } from '../series/answer.ts';
import { seriesQuery } from '../series/queries.ts';
import { useRange } from '../series/range.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import { gpuParts, reachChanges } from './overTime.ts';

export function GpusOverTime() {
  const { t } = useTranslation();
  return (
    <ChartPanel title={t('chart.gpus')}>
      <Gpus label={t('chart.gpus')} />
    </ChartPanel>
  );
}

function Gpus({ label }: { label: string }) {
  const { t } = useTranslation('deferred');
  const [range] = useRange();
  const { cluster } = useScope();
  const of = cluster ? ({ by: 'cluster', name: cluster } as const) : ({ by: 'fleet' } as const);
  const { data, error, refetch } = useQuery(seriesQuery({ metric: 'requested,capacity,free,unreachable', ...of }, range));
  const reach = useQuery(seriesQuery({ metric: 'unreachable', by: 'cluster', ...(cluster ? { name: cluster } : {}) }, range));
  const lines = data && gpuParts(data, cluster).map((part) => ({ ...part, label: t(`gpus.${part.id}`), stacked: true }));
  const marks = reach.data
    ? reachChanges(reach.data).map(({ at, name, lost }) => ({
        at,
        text: t(lost ? 'lost' : 'back', { name }),
        tone: lost ? ('bad' as const) : ('good' as const),
      }))
    : [];
  return (
    <>
      <SeriesChart
        label={label}
        error={error}
        onRetry={() => void refetch()}
        chart={data && lines && { times: timesOf(data), step: data.step, lines, marks }}
      />
      {reach.data?.is_cut && <p className="cv-soft">{t('cut')}</p>}
    </>
  );
}
