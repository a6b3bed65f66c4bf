/** A day, a week, 30 days, or one of the last twelve months. */
import { NativeSelect, SegmentedControl } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { useNow } from '../ui/clock.ts';
import { type Chosen, HOUR_MS, monthsUntil, PERIODS } from './period.ts';

interface Props {
  chosen: Chosen;
  onChange: (change: Partial<Chosen>) => void;
}

export function PeriodSwitch({ chosen, onChange }: Props) {
  const { t, i18n } = useTranslation('deferred');
  const now = useNow(HOUR_MS);
  const words = new Intl.DateTimeFormat(i18n.language, { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return (
    <>
      <SegmentedControl
        size="xs"
        aria-label={t('reports.period')}
        value={chosen.period}
        onChange={(period) => onChange({ period })}
        data={PERIODS.map((value) => ({ value, label: t(`reports.periods.${value}`) }))}
      />
      {chosen.period === 'month' && (
        <NativeSelect
          size="xs"
          aria-label={t('reports.month')}
          value={chosen.month}
          onChange={({ currentTarget: { value } }) => onChange({ period: 'month', month: value })}
          data={[...new Set([...monthsUntil(now), chosen.month])].map((value) => ({ value, label: words.format(new Date(`${value}-01T00:00:00Z`)) }))}
        />
      )}
    </>
  );
}
