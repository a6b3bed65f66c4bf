/** The jobs in groups: a row for each value with how many there are, opened one by one; an open group is a list of its own. */
import { Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { Failed } from '../ui/Message.tsx';
import type { OptionalColumn } from './columnNames.ts';
import type { JobFilters } from './filters.ts';
import type { GroupBy } from './groups.ts';
import { JobTable } from './JobTable.tsx';
import { groupsQuery } from './queries.ts';
import classes from './ListTools.module.css';
import { useJobList } from './useJobList.ts';

interface Props {
  filters: JobFilters;
  by: GroupBy;
  columns: readonly OptionalColumn[];
  onChange: (part: Partial<JobFilters>) => void;
  selected: ReadonlySet<string>;
  onSelect: (ids: string[], on: boolean) => void;
}

export function GroupRows(props: Props) {
  const { filters, by, onChange } = props;
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(groupsQuery(filters, by));
  const [open, setOpen] = useState<string | null>(null);
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={160} aria-busy />;
  return data.results.map(({ value, count, gpus }) => {
    const shown = open === value && value !== '';
    const name = value ? (by === 'state' ? t(`jobState.${value as 'Queued'}`) : value) : t('list.none');
    const Chevron = shown ? ChevronDown : ChevronRight;
    return (
      <section key={value} className={classes['section']}>
        <h2 className={classes['head']}>
          <button type="button" className={classes['toggle']} aria-expanded={shown} disabled={value === ''} onClick={() => setOpen(shown ? null : value)}>
            <Chevron size={15} aria-hidden />
            <span className={classes['value']} title={name}>
              {name}
            </span>{' '}
            <b className="cv-numbers">{count}</b>{' '}
            <span className="cv-soft cv-numbers">{t('list.groupGpus', { count: gpus })}</span>
          </button>
          {value && (
            <Button size="compact-xs" variant="subtle" aria-label={t('list.onlyOf', { name })} onClick={() => onChange({ [by]: value })}>
              {t('list.only')}
            </Button>
          )}
        </h2>
        {shown && <Group {...props} name={name} filters={{ ...filters, [by]: value }} />}
      </section>
    );
  });
}

function Group({ filters, name, columns, onChange, selected, onSelect }: Props & { name: string }) {
  const list = useJobList(filters);
  if (list.error && list.count === undefined) return <Failed error={list.error} onRetry={list.retry} />;
  return (
    <JobTable
      list={list}
      caption={name}
      columns={columns}
      ordering={filters.ordering}
      onOrder={(ordering) => onChange({ ordering })}
      selected={selected}
      onSelect={onSelect}
    />
  );
}
