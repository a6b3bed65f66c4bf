/** A chart in its four states: on its way, failed with another try, nothing recorded yet, and there. */
import { Skeleton } from '@mantine/core';
import { LineChart } from 'lucide-react';
import { lazy } from 'react';
import { useTranslation } from 'react-i18next';

import { isEmpty, type Line, type Mark, type Value } from '../ui/chart/data.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { CHART_HEIGHT } from './ChartPanel.tsx';

const TimeChart = lazy(async () => ({ default: (await import('../ui/chart/TimeChart.tsx')).TimeChart }));

interface Props {
  label: string;
  error: Error | null;
  onRetry: () => void;
  /** Undefined while it is on its way. */
  chart: { times: number[]; step: number; lines: Line[]; marks?: Mark[] } | undefined;
  format?: (value: number) => string;
  /** A value beside the axis, where it is no plain number. */
  axis?: (value: number) => string;
}

export function SeriesChart({ label, error, onRetry, chart, format, axis }: Props) {
  const { t, i18n } = useTranslation('deferred');
  if (!chart && error) return <Failed error={error} onRetry={onRetry} />;
  if (!chart) return <Skeleton height={CHART_HEIGHT} aria-busy />;
  if (isEmpty(chart.lines)) {
    return (
      <Empty title={t('emptyTitle')} icon={LineChart}>
        {t('emptyBody')}
      </Empty>
    );
  }
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 });
  const show = format ?? ((value: number) => number.format(value));
  const words = (value: Value) => (value === null ? t('unknown') : show(value));
  return <TimeChart label={label} {...chart} format={words} axis={axis} />;
}
