/** GPU-hours, what became of them and what they cost, by team, user, model, queue, cluster or month; and as a file. */
import { useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'react-router';

import type { Accounting } from '../api/types.ts';
import { useChangeParams } from '../scope/useScope.ts';
import { DataTable } from '../ui/DataTable.tsx';
import { type Part, Parts, PartsKey } from './Parts.tsx';
import type { Chosen } from './period.ts';
import { accountingQuery, filePath, type Owner, OWNERS } from './queries.ts';
import { Choice, Files, Report, States } from './Report.tsx';
import { waitedOf } from './totals.ts';
import { useWords } from './useWords.ts';

export function HoursAndCost({ chosen }: { chosen: Chosen }) {
  const { t } = useWords();
  const [params] = useSearchParams();
  const change = useChangeParams();
  const by = OWNERS.find((each) => each === params.get('by')) ?? 'team';
  const query = useQuery(accountingQuery(chosen, by));
  const controls = (
    <>
      <Choice
        label={t('hours.by')}
        value={by}
        values={OWNERS.map((value) => ({ value, label: t(`reports.by.${value}`) }))}
        onChange={(next) => change({ by: next === 'team' ? '' : next }, { replace: true })}
      />
      <Files paths={[{ form: 'CSV', path: filePath('accounting', chosen, by, 'csv') }]} />
    </>
  );
  return (
    <Report title={t('reports.hoursAndCost')} about={t('reports.hoursAbout')} controls={controls}>
      <States query={query} isEmpty={({ results }) => results.length === 0} empty={t('hours.emptyBody')}>
        {({ results }) => <Rows by={by} rows={results} stale={query.isPlaceholderData} />}
      </States>
    </Report>
  );
}

function Rows({ by, rows, stale }: { by: Owner; rows: Accounting[]; stale: boolean }) {
  const { t, hours, money, percent, count } = useWords();
  const most = Math.max(0, ...rows.map((row) => row.gpu_hours));
  const nameOf = ({ name }: Accounting) => name || (by === 'month' ? '' : t(`hours.none.${by}`));
  const partsOf = (row: Accounting): Part[] => [
    { look: 'good', label: t('reports.part.useful'), value: row.useful_gpu_hours },
    { look: 'start', label: t('reports.part.starting'), value: row.starting_gpu_hours },
    { look: 'preempted', label: t('reports.part.preempted'), value: row.preempted_gpu_hours },
    { look: 'lost', label: t('reports.part.lost'), value: row.lost_gpu_hours },
    { look: 'stopped', label: t('reports.part.stopped'), value: row.stopped_gpu_hours },
  ];
  const words = (row: Accounting) => `${nameOf(row)}: ${partsOf(row).map(({ label, value }) => `${label} ${hours(value)}`).join(', ')}`;
  const [first] = rows;
  return (
    <>
      <DataTable
        caption={t('reports.hoursAndCost')}
        rows={rows}
        rowKey={({ name }) => name}
        stale={stale}
        columns={[
          { id: 'name', header: t(`reports.by.${by}`), cell: nameOf },
          { id: 'hours', header: t('reports.gpuHours'), align: 'end', cell: (row) => hours(row.gpu_hours) },
          { id: 'parts', header: t('reports.became'), width: '30%', cell: (row) => <Parts parts={partsOf(row)} total={most} label={words(row)} /> },
          { id: 'useful', header: t('reports.useful'), align: 'end', cell: (row) => percent(row.goodput) },
          { id: 'wasted', header: t('reports.wasted'), align: 'end', cell: (row) => hours(row.preempted_gpu_hours + row.lost_gpu_hours) },
          { id: 'cost', header: t('reports.cost'), align: 'end', cell: (row) => (row.unpriced_gpu_hours >= row.gpu_hours && row.gpu_hours > 0 ? t('reports.noPrice') : money(row.cost)) },
          { id: 'waited', header: t('reports.waited'), align: 'end', cell: (row) => hours(waitedOf(row)) },
          { id: 'attempts', header: t('hours.attempts'), align: 'end', cell: (row) => count(row.attempts) },
        ]}
      />
      {first && <PartsKey parts={partsOf(first)} />}
    </>
  );
}
