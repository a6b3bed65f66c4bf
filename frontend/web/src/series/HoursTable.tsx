/** GPU-hours as a table with a bar in each row: how much of the whole it is, and how much of it was only held. */
import { useTranslation } from 'react-i18next';

import type { GpuHours } from '../api/types.ts';
import { DataTable } from '../ui/DataTable.tsx';
import { StackedBar } from '../ui/StackedBar.tsx';
import type { Owner } from './queries.ts';

interface Props {
  by: Owner;
  rows: GpuHours[] | undefined;
  label: string;
  stale: boolean;
}

export function HoursTable({ by, rows, label, stale }: Props) {
  const { t, i18n } = useTranslation('deferred');
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 2 });
  const most = Math.max(0, ...(rows ?? []).map((row) => row.used_gpu_hours + row.held_gpu_hours));
  const named = ({ name }: GpuHours) => name || t(`hours.none.${by}`);
  return (
    <DataTable
      caption={label}
      rows={rows}
      rowKey={({ name }) => name}
      stale={stale}
      columns={[
        { id: 'name', header: t(`hours.${by}`), cell: named },
        { id: 'used', header: t('hours.used'), align: 'end', cell: (row) => number.format(row.used_gpu_hours) },
        { id: 'held', header: t('hours.held'), align: 'end', cell: (row) => number.format(row.held_gpu_hours) },
        { id: 'attempts', header: t('hours.attempts'), align: 'end', cell: (row) => number.format(row.attempts) },
        {
          id: 'share',
          header: t('hours.share'),
          width: '40%',
          cell: (row) => (
            <StackedBar
              total={most}
              label={t('hours.bar', { name: named(row), used: number.format(row.used_gpu_hours), held: number.format(row.held_gpu_hours) })}
              segments={[
                { look: 'used', value: row.used_gpu_hours },
                { look: 'held', value: row.held_gpu_hours },
              ]}
            />
          ),
        },
      ]}
    />
  );
}
