/** What the GPUs of a job do, and did since its pods started, where that is measured. */
import { useQuery } from '@tanstack/react-query';
import { Gauge } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { JobDetail, JobGpu } from '../api/types.ts';
import { ChartPanel } from '../series/ChartPanel.tsx';
import { type Range, useRange } from '../series/range.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import { type Column, DataTable } from '../ui/DataTable.tsx';
import { Empty } from '../ui/Message.tsx';
import { leastUsed, linesOf, LISTED, timesOfHistory } from './gpuLines.ts';
import { jobGpusQuery } from './queries.ts';

/** Of each range; minutes are kept for three days. */
const HOURS: Record<Range, number> = { '1h': 1, '24h': 24, '7d': 72 };

export function JobGpuUse({ job }: { job: JobDetail }) {
  const { t } = useTranslation('deferred');
  return (
    <ChartPanel title={t('gpuUse.title')}>
      <Use id={job.id} label={t('gpuUse.title')} />
    </ChartPanel>
  );
}

function Use({ id, label }: { id: string; label: string }) {
  const { t } = useTranslation('deferred');
  const [range] = useRange();
  const { data, error, refetch } = useQuery(jobGpusQuery(id, HOURS[range]));
  if (data?.gpus.length === 0) {
    return (
      <Empty title={t('gpuUse.noneTitle')} icon={Gauge}>
        {t('gpuUse.noneBody')}
      </Empty>
    );
  }
  const lines = data && linesOf(data.history, (pod, gpu) => t('gpuUse.gpu', { pod, gpu }), (name) => t(`gpuUse.${name}`));
  return (
    <>
      <SeriesChart
        label={label}
        error={error}
        onRetry={() => void refetch()}
        chart={data && lines && { times: timesOfHistory(data.history), step: data.history.step, lines }}
        format={percent}
        axis={percent}
      />
      {data && <Now gpus={data.gpus} />}
    </>
  );
}

const percent = (value: number) => `${String(Math.round(value))} %`;

function Now({ gpus }: { gpus: JobGpu[] }) {
  const { t, i18n } = useTranslation('deferred');
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 0 });
  const shown = (value: number | null, unit: string) => (value === null ? '–' : `${number.format(value)} ${unit}`);
  const columns: Column<JobGpu>[] = [
    { id: 'pod', header: t('gpuUse.pod'), cell: ({ pod }) => <span className="cv-mono">{pod}</span> },
    { id: 'gpu', header: t('gpuUse.number'), align: 'end', cell: ({ gpu }) => gpu },
    { id: 'use', header: t('gpuUse.now'), align: 'end', cell: ({ utilization }) => shown(utilization, '%') },
    {
      id: 'memory',
      header: t('gpuUse.memory'),
      align: 'end',
      cell: ({ memory_used, memory_total }) => `${shown(memory_used, '')}/ ${shown(memory_total, 'MiB')}`,
    },
    { id: 'power', header: t('gpuUse.power'), align: 'end', cell: ({ power }) => shown(power, 'W') },
    { id: 'temperature', header: t('gpuUse.temperature'), align: 'end', cell: ({ temperature }) => shown(temperature, '°C') },
  ];
  return (
    <>
      <DataTable caption={t('gpuUse.readings')} columns={columns} rows={leastUsed(gpus)} rowKey={({ node, gpu }) => `${node}/${gpu}`} />
      {gpus.length > LISTED && <p className="cv-soft">{t('gpuUse.more', { count: gpus.length - LISTED })}</p>}
    </>
  );
}
