/** The list of jobs, a row each, with the columns that were chosen. */
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';

import { VirtualTable } from '../ui/VirtualTable.tsx';
import type { OptionalColumn } from './columnNames.ts';
import { columnsOf, widthOf } from './columns.tsx';
import type { JobList } from './useJobList.ts';

interface Props {
  list: JobList;
  /** How the list is called where there are several. */
  caption?: string;
  columns: readonly OptionalColumn[];
  ordering: string;
  onOrder: (ordering: string) => void;
  selected: ReadonlySet<string>;
  onSelect: (ids: string[], on: boolean) => void;
}

export function JobTable({ list, caption, columns: shown, ordering, onOrder, selected, onSelect }: Props) {
  const { t } = useTranslation();
  const columns = useMemo(() => columnsOf(shown, t), [shown, t]);
  return (
    <VirtualTable
      caption={caption ?? t('jobs.title')}
      columns={columns}
      width={widthOf(columns)}
      count={list.count}
      rowAt={list.rowAt}
      rowKey={({ id }) => id}
      onRange={list.onRange}
      ordering={ordering}
      onOrder={onOrder}
      selection={{
        has: ({ id }) => selected.has(id),
        toggle: ({ id }, on) => onSelect([id], on),
        label: ({ name }) => t('list.select', { name }),
        all: {
          label: t('list.selectAll'),
          disabled: list.loaded.length === 0,
          on: list.loaded.length > 0 && list.loaded.every(({ id }) => selected.has(id)),
          some: selected.size > 0,
          toggle: (on) => onSelect(list.loaded.map(({ id }) => id), on),
        },
      }}
    />
  );
}
