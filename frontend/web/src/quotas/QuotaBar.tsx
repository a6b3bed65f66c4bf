/** One resource of one quota: what is used, borrowed and lent, between the handles of min and max. */
import { useTranslation } from 'react-i18next';

import type { QuotaAmount } from '../api/types.ts';
import { quantityOf, stepOf } from './amounts.ts';
import { amountOf, type Bound, type Quota } from './model.ts';
import { share, QuotaHandle } from './QuotaHandle.tsx';
import classes from './QuotaBar.module.css';

interface Props {
  quota: Quota;
  resource: string;
  /** Of now; undefined for a quota that is not saved yet. */
  use: QuotaAmount | undefined;
  scale: number;
  wrong: (bound: Bound) => boolean;
  disabled: boolean;
  onChange: (bound: Bound, text: string) => void;
}

export function QuotaBar({ quota, resource, use, scale, wrong, disabled, onChange }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const bounds = { min: amountOf(quota, 'min', resource), max: amountOf(quota, 'max', resource) };
  const { used = 0, lent = 0 } = use ?? {};
  const borrowed = use?.borrowed || bounds.min !== null ? Math.max(0, used - (bounds.min ?? 0)) : 0;
  const quantity = (units: number) => quantityOf(resource, units);
  const named = (bound: Bound) => (bounds[bound] === null ? t('deferred:quotas.none') : quantity(bounds[bound]));
  const text = { used: quantity(used), borrowed: quantity(borrowed), lent: quantity(lent), min: named('min'), max: named('max') };
  const min = bounds.min ?? 0;
  return (
    <div className={classes['bar']}>
      <div className={classes['track']} role="img" aria-label={t('deferred:quotas.barLabel', { path: quota.path, resource, ...text })}>
        <span className={classes['allowed']} style={{ width: `${share(bounds.max ?? scale, scale)}%` }} />
        <span className={classes['promised']} style={{ width: `${share(min, scale)}%` }} />
        <span className={classes['used']} style={{ width: `${share(used - borrowed, scale)}%` }} />
        <span
          className={classes['borrowed']}
          style={{ left: `${share(used - borrowed, scale)}%`, width: `${share(borrowed, scale)}%` }}
        />
        <span className={classes['lent']} style={{ left: `${share(min - lent, scale)}%`, width: `${share(lent, scale)}%` }} />
      </div>
      {(['max', 'min'] as const).map((bound) => (
        <QuotaHandle
          key={bound}
          bound={bound}
          label={t('deferred:quotas.handle', { bound, resource, path: quota.path })}
          value={bounds[bound] ?? (bound === 'min' ? 0 : null)}
          text={named(bound)}
          scale={scale}
          step={stepOf(resource)}
          wrong={wrong(bound)}
          disabled={disabled}
          onChange={(units) => onChange(bound, quantity(units))}
        />
      ))}
    </div>
  );
}
