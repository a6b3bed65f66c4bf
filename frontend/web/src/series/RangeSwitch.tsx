/** One hour, a day, or a week. */
import { SegmentedControl } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { RANGES, useRange } from './range.ts';

export function RangeSwitch() {
  const { t } = useTranslation();
  const [range, setRange] = useRange();
  return (
    <SegmentedControl
      size="xs"
      aria-label={t('chart.rangeLabel')}
      value={range}
      onChange={setRange}
      data={RANGES.map((value) => ({ value, label: t(`chart.range.${value}`) }))}
    />
  );
}
