/** How many of the jobs shown there are of each state, queue, reason ...; a press narrows the list to them. */
import { Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import type { JobFilters, TextFilter } from './filters.ts';
import { groupsQuery } from './queries.ts';
import classes from './ListTools.module.css';

const BY = ['state', 'kind', 'namespace', 'queue', 'cluster', 'policy', 'reason'] as const satisfies TextFilter[];
const SHOWN = 12;

interface Props {
  filters: JobFilters;
  by: string;
  onBy: (by: string) => void;
  onChange: (part: Partial<JobFilters>) => void;
}

export function GroupBar({ filters, by: asked, onBy, onChange }: Props) {
  const { t } = useTranslation();
  const by = BY.find((name) => name === asked);
  const { data } = useQuery({ ...groupsQuery(filters, by ?? ''), enabled: by !== undefined });
  return (
    <div className={classes['groups']}>
      <Select
        size="xs"
        w={150}
        aria-label={t('list.groupBy')}
        placeholder={t('list.groupBy')}
        clearable
        value={by ?? null}
        onChange={(next) => onBy(next ?? '')}
        data={BY.map((name) => ({ value: name, label: t(`jobs.group.${name}`) }))}
      />
      {by &&
        data?.results.slice(0, SHOWN).map(({ value, count }) => (
          <button
            key={value}
            type="button"
            className={classes['group']}
            aria-pressed={filters[by] === value && value !== ''}
            disabled={value === ''}
            onClick={() => onChange({ [by]: filters[by] === value ? '' : value })}
          >
            {value || t('list.none')} <b className="cv-numbers">{count}</b>
          </button>
        ))}
    </div>
  );
}
