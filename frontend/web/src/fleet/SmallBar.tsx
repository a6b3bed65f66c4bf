/** CPU or memory in one thin line: how full, and of how much. */
import { useTranslation } from 'react-i18next';

import type { Capacity } from '../api/types.ts';
import { StackedBar } from '../ui/StackedBar.tsx';
import { formatAmount, percent } from './resources.ts';
import classes from './SmallBar.module.css';

export function SmallBar({ resource, capacity }: { resource: 'cpu' | 'memory'; capacity: Capacity }) {
  const { t, i18n } = useTranslation();
  const taken = capacity.requested + capacity.held;
  const share = percent(taken, capacity.allocatable, i18n.language);
  const name = t(`resource.${resource}`);
  const total = formatAmount(resource, capacity.allocatable, i18n.language);
  return (
    <div>
      <div className={classes['line']}>
        <span>{name}</span>
        <span title={t(`resource.${resource}Total`, { total })}>{share}</span>
      </div>
      <StackedBar
        size="thin"
        total={capacity.allocatable}
        label={t('resource.bar', { name, share, total })}
        segments={[
          { look: 'used', value: capacity.requested },
          { look: 'held', value: capacity.held },
        ]}
      />
    </div>
  );
}
