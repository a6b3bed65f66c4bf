/** GPU-hours of a time by team, user, queue, cluster or GPU model: of the jobs that the reader may see, and as a file. */
import { Button, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Clock, Download } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import { useChangeParams } from '../scope/useScope.ts';
import { useNow } from '../ui/clock.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { ChartPanel } from './ChartPanel.tsx';
import { HoursTable } from './HoursTable.tsx';
import { hoursPath, hoursQuery, type Owner, OWNERS } from './queries.ts';
import { type Range, useRange } from './range.ts';

const TICK_MS = 60_000;

export function GpuHours() {
  const { t } = useTranslation();
  const [range] = useRange();
  const [params] = useSearchParams();
  const by = OWNERS.find((each) => each === params.get('by')) ?? 'team';
  return (
    <ChartPanel title={t('chart.hours')} actions={<Choices by={by} range={range} />}>
      <Hours by={by} range={range} label={t('chart.hours')} />
    </ChartPanel>
  );
}

function Choices({ by, range }: { by: Owner; range: Range }) {
  const { t } = useTranslation('deferred', { useSuspense: false });
  const change = useChangeParams();
  const now = useNow(TICK_MS);
  return (
    <>
      <Button
        component="a"
        href={`/api/v1/${hoursPath(by, range, now, 'csv')}`}
        download={`gpu-hours-by-${by}.csv`}
        size="xs"
        variant="default"
        leftSection={<Download size={14} aria-hidden />}
      >
        CSV
      </Button>
      <SegmentedControl
        size="xs"
        aria-label={t('hours.by')}
        value={by}
        onChange={(next) => change({ by: next === 'team' ? '' : next }, { replace: true })}
        data={OWNERS.map((value) => ({ value, label: t(`hours.${value}`) }))}
      />
    </>
  );
}

function Hours({ by, range, label }: { by: Owner; range: Range; label: string }) {
  const { t } = useTranslation('deferred');
  const { data, error, refetch, isPlaceholderData } = useQuery(hoursQuery(by, range));
  if (!data && error) return <Failed error={error} onRetry={() => void refetch()} />;
  if (data?.results.length === 0) {
    return (
      <Empty title={t('hours.emptyTitle')} icon={Clock}>
        {t('hours.emptyBody')}
      </Empty>
    );
  }
  return <HoursTable by={by} rows={data?.results} label={label} stale={isPlaceholderData} />;
}
