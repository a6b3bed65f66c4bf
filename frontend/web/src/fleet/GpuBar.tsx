/** Accelerators used, held and free: a bar for the eye, the same numbers as text for everybody. */
import { useTranslation } from 'react-i18next';

import type { Capacity } from '../api/types.ts';
import { StackedBar } from '../ui/StackedBar.tsx';
import classes from './GpuBar.module.css';

interface Props {
  capacity: Capacity;
  name: string;
  size?: 'thin' | 'normal' | 'tall';
  legend?: boolean;
}

export function GpuBar({ capacity, name, size = 'normal', legend = true }: Props) {
  const { t, i18n } = useTranslation();
  const { requested: used, held, free, allocatable: total } = capacity;
  const number = new Intl.NumberFormat(i18n.language);
  return (
    <div className={classes['gpus']}>
      <StackedBar
        size={size}
        total={total}
        label={t('gpus.label', { name, used, held, free, total })}
        segments={[
          { look: 'used', value: used },
          { look: 'held', value: held },
        ]}
      />
      {legend && (
        <dl className={classes['legend']}>
          {(['used', 'held', 'free'] as const).map((part) => (
            <div key={part} data-zero={{ used, held, free }[part] === 0}>
              <dt>
                <span className={classes['key']} data-look={part} aria-hidden />
                {t(`gpus.${part}`)}
              </dt>
              <dd>{number.format({ used, held, free }[part])}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
