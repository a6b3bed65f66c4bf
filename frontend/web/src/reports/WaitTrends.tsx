/** How long jobs waited before they were placed: half of them, and nearly all, by queue or by the reason, and step by step. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { Waits, WaitsRow } from '../api/types.ts';
import { isReasonCode } from '../fleet/reasons.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import type { Line } from '../ui/chart/data.ts';
import { DataTable } from '../ui/DataTable.tsx';
import type { Chosen } from './period.ts';
import { filePath, type Waiter, WAITERS, waitsQuery } from './queries.ts';
import { Choice, Files, Report, States } from './Report.tsx';
import { useWords } from './useWords.ts';
import classes from './Report.module.css';

export function WaitTrends({ chosen }: { chosen: Chosen }) {
  const { t } = useWords();
  const [by, setBy] = useState<Waiter>('queue');
  const query = useQuery(waitsQuery(chosen, by));
  const controls = (
    <>
      <Choice
        label={t('hours.by')}
        value={by}
        values={WAITERS.map((value) => ({ value, label: t(`reports.by.${value}`) }))}
        onChange={setBy}
      />
      <Files paths={[{ form: 'CSV', path: filePath('waits', chosen, by, 'csv') }]} />
    </>
  );
  return (
    <Report title={t('reports.waits')} about={t(`reports.waitsAbout.${by === 'reason' ? 'reason' : 'other'}`)} controls={controls}>
      <States query={query} isEmpty={({ results }) => results.length === 0} empty={t('reports.waitsEmpty')} height={320}>
        {(answer) => <Trend by={by} answer={answer} stale={query.isPlaceholderData} />}
      </States>
    </Report>
  );
}

function Trend({ by, answer, stale }: { by: Waiter; answer: Waits; stale: boolean }) {
  const { t, duration, count } = useWords();
  const { i18n } = useTranslation('deferred');
  const [name, setName] = useState<string>();
  const row = answer.results.find((each) => each.name === name) ?? answer.results[0];
  const { t: why } = useTranslation();
  const labelOf = (of: string) => (by !== 'reason' ? of || t(`hours.none.${by}`) : isReasonCode(of) ? why(`why.${of}`) : of);
  if (!row) return null;
  const lines: Line[] = [
    { id: 'p95', label: t('reports.p95'), look: 'borrowed', values: row.trend.map(({ p95_s }) => p95_s) },
    { id: 'p50', label: t('reports.p50'), look: 'used', values: row.trend.map(({ p50_s }) => p50_s) },
  ];
  const times = row.trend.map((_, i) => answer.start + i * answer.step);
  return (
    <>
      <Choice
        label={t('reports.trendOf')}
        value={row.name}
        values={answer.results.map((each) => ({ value: each.name, label: labelOf(each.name) }))}
        onChange={setName}
      />
      <SeriesChart
        key={`${by} ${i18n.language}`}
        label={`${t('reports.waits')}: ${labelOf(row.name)}`}
        error={null}
        onRetry={() => undefined}
        chart={{ times, step: answer.step, lines }}
        format={duration}
        axis={(seconds) => (Number.isInteger(seconds) ? duration(seconds) : '')}
      />
      <div className={classes['gap']}>
        <DataTable<WaitsRow>
          caption={t('reports.waits')}
          rows={answer.results}
          rowKey={(each) => each.name}
          stale={stale}
          columns={[
            { id: 'name', header: t(`reports.by.${by}`), cell: (each) => labelOf(each.name) },
            { id: 'p50', header: t('reports.p50'), align: 'end', cell: (each) => duration(each.p50_s) },
            { id: 'p95', header: t('reports.p95'), align: 'end', cell: (each) => duration(each.p95_s) },
            { id: 'count', header: t('reports.placed'), align: 'end', cell: (each) => count(each.count) },
            { id: 'waiting', header: t('reports.waitingNow'), align: 'end', cell: (each) => count(each.waiting) },
            { id: 'longest', header: t('reports.longest'), align: 'end', cell: (each) => (each.waiting > 0 ? duration(each.longest_s) : '–') },
          ]}
        />
      </div>
    </>
  );
}
