/** By what the jobs are grouped; none is the rule. */
import { Select } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { BY, type GroupBy } from './groups.ts';

export function GroupBar({ by, onBy }: { by: GroupBy | undefined; onBy: (by: string) => void }) {
  const { t } = useTranslation();
  return (
    <Select
      size="xs"
      aria-label={t('list.groupBy')}
      placeholder={t('list.groupBy')}
      clearable
      value={by ?? null}
      onChange={(next) => onBy(next ?? '')}
      data={BY.map((name) => ({ value: name, label: t(`jobs.group.${name}`) }))}
    />
  );
}
