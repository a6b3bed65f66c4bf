/** The controls that narrow the list of jobs; every one of them writes to the address. Namespace, queue and cluster are the frame's. */
import { Button, Select } from '@mantine/core';
import { Search, X } from 'lucide-react';
import type { ReactNode, RefObject } from 'react';
import { useTranslation } from 'react-i18next';

import { SettledInput } from '../ui/SettledInput.tsx';
import { isNarrowed, type JobFilters } from './filters.ts';
import { STATE_NAMES } from './states.ts';
import classes from './JobFilterBar.module.css';

interface Props {
  filters: JobFilters;
  searchRef: RefObject<HTMLInputElement | null>;
  onChange: (part: Partial<JobFilters>) => void;
  onClear: () => void;
  /** Controls beside them. */
  children: ReactNode;
}

export function JobFilterBar({ filters, searchRef, onChange, onClear, children }: Props) {
  const { t } = useTranslation();
  const text = (name: 'search' | 'kind' | 'labels') => ({
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
      <SettledInput {...text('kind')} />
      <SettledInput {...text('labels')} />
      {(['reason', 'policy', 'user'] as const).map(
        (name) =>
          filters[name] && (
            <Button
              key={name}
              size="xs"
              variant="light"
              rightSection={<X size={13} aria-hidden />}
              title={t('jobs.anyOf', { what: t(`jobs.group.${name}`) })}
              onClick={() => onChange({ [name]: '' })}
            >
              {`${t(`jobs.group.${name}`)}: ${filters[name]}`}
            </Button>
          ),
      )}
      {children}
      {isNarrowed(filters) && (
        <Button size="xs" variant="subtle" color="gray" leftSection={<X size={14} />} onClick={onClear}>
          {t('jobs.clear')}
        </Button>
      )}
    </search>
  );
}
