/** The controls that narrow the list of jobs; every one of them writes to the address. */
import { Button, Select, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { Search, X } from 'lucide-react';
import { useEffect, useState, type RefObject } from 'react';
import { useTranslation } from 'react-i18next';

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
  return (
    <search className={classes['bar']}>
      <TextFilterBox name="search" wide filters={filters} inputRef={searchRef} onChange={onChange} />
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
      <TextFilterBox name="namespace" filters={filters} onChange={onChange} />
      <TextFilterBox name="kind" filters={filters} onChange={onChange} />
      {isNarrowed(filters) && (
        <Button size="xs" variant="subtle" color="gray" leftSection={<X size={14} />} onClick={onClear}>
          {t('jobs.clear')}
        </Button>
      )}
    </search>
  );
}

interface TextProps {
  name: TextFilter;
  wide?: boolean;
  filters: JobFilters;
  inputRef?: RefObject<HTMLInputElement | null>;
  onChange: (part: Partial<JobFilters>) => void;
}

/** Follows the address (back, a shared link) and writes to it once the typing rests. */
function TextFilterBox({ name, wide = false, filters, inputRef, onChange }: TextProps) {
  const { t } = useTranslation();
  const given = filters[name];
  const [typed, setTyped] = useState(given);
  const [shown, setShown] = useState(given);
  if (shown !== given) {
    setShown(given);
    setTyped(given);
  }
  const settle = useDebouncedCallback((text: string) => onChange({ [name]: text.trim() }), 250);
  useEffect(() => () => settle.cancel(), [settle]);
  return (
    <TextInput
      size="xs"
      ref={inputRef}
      wrapperProps={{ 'data-wide': wide }}
      aria-label={t(`jobs.filter.${name}`)}
      placeholder={t(`jobs.filter.${name}`)}
      leftSection={name === 'search' ? <Search size={14} aria-hidden /> : undefined}
      value={typed}
      onChange={({ currentTarget: { value } }) => {
        setTyped(value);
        settle(value);
      }}
    />
  );
}
