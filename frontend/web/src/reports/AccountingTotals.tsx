/** The time in four numbers: GPU-hours, how much of them was useful, their cost, and how long jobs waited. */
import { useQuery } from '@tanstack/react-query';
import { Skeleton } from '@mantine/core';

import { Tiles } from './Parts.tsx';
import type { Chosen } from './period.ts';
import { accountingQuery } from './queries.ts';
import { totalOf } from './totals.ts';
import { useWords } from './useWords.ts';

export function AccountingTotals({ chosen }: { chosen: Chosen }) {
  const { t, hours, money, percent, count } = useWords();
  const { data, error } = useQuery(accountingQuery(chosen, 'month'));
  // The panel below says what failed, and tries again.
  if (!data) return error ? null : <Skeleton height={86} aria-busy />;
  const total = totalOf(data.results);
  return (
    <Tiles
      label={t('reports.totals')}
      tiles={[
        { name: t('reports.gpuHours'), value: hours(total.gpu_hours), note: t('reports.attempts', { count: total.attempts, shown: count(total.attempts) }) },
        { name: t('reports.useful'), value: percent(total.gpu_hours ? total.useful / total.gpu_hours : null), note: t('reports.usefulNote', { hours: hours(total.useful) }) },
        {
          name: t('reports.cost'),
          value: total.cost === 0 && total.unpriced > 0 ? '–' : money(total.cost),
          note: total.unpriced > 0 ? t('reports.unpriced', { hours: hours(total.unpriced) }) : t('reports.priced'),
        },
        { name: t('reports.waited'), value: hours(total.waited), note: t('reports.waitedNote') },
      ]}
    />
  );
}
