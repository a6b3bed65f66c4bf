/** The controls that narrow the list of jobs; every one of them writes to the address. */
import { Button, Select } from '@mantine/core';
import { Search, X } from 'lucide-react';
import type { RefObject } from 'react';
import { useTranslation } from 'react-i18next';

import { SettledInput } from '../ui/SettledInput.tsx';
import { isNarrowed, type JobFilters, type TextFilter } from './filters.ts';
import { STATE_NAMES } from './states.ts';
import classes from './JobFilterBar.module.css';

interface Props {
  filters: JobFilters;
  clusters: string[];
  searchRef: RefObject<HTMLInputElement | null>;
  onChange: (part: Partial<JobFilters>) => void;
  onClear: () => void;
}

export function JobFilterBar({ filters, clusters, searchRef, onChange, onClear }: Props) {
  const { t } = useTranslation();
  const text = (name: TextFilter) => ({
    label: t(`jobs.filter.${name}`),
    value: filters[name],
    onSettle: (value: string) => onChange({ [name]: value }),
  });
  return (
    <search className={classes['bar']}>
      <SettledInput {...text('search')} wide icon={<Search size={14} aria-hidden />} inputRef={searchRef} />
      <Select
        size="xs"
        aria-label={t('jobs.column.state')}
        placeholder={t('jobs.anyState')}
        clearable
        value={filters.state || null}
        onChange={(state) => onChange({ state: state ?? '' })}
        data={STATE_NAMES.map((state) => ({ value: state, label: t(`jobState.${state}`) }))}
      />
      <Select
        size="xs"
        aria-label={t('jobs.column.cluster')}
        placeholder={t('jobs.anyCluster')}
        clearable
        searchable
        value={filters.cluster || null}
        onChange={(cluster) => onChange({ cluster: cluster ?? '' })}
        data={clusters}
      />
      <SettledInput {...text('namespace')} />
      <SettledInput {...text('kind')} />
      <SettledInput {...text('queue')} />
      <SettledInput {...text('labels')} />
      {isNarrowed(filters) && (
        <Button size="xs" variant="subtle" color="gray" leftSection={<X size={14} />} onClick={onClear}>
          {t('jobs.clear')}
        </Button>
      )}
    </search>
  );
}
