/** A bound of a quota, typed: any spelling a manifest takes, steps by the arrow keys, empty for no bound. */
import { useTranslation } from 'react-i18next';

import { quantityOf, stepOf, unitsOf } from './amounts.ts';
import type { Bound } from './model.ts';
import classes from './QuotaGrid.module.css';

interface Props {
  bound: Bound;
  resource: string;
  path: string;
  text: string;
  changed: boolean;
  wrong: boolean;
  describedBy: string;
  /** Why it may not be changed; empty when it may. */
  obstacle: string;
  onChange: (text: string) => void;
}

export function AmountInput({ bound, resource, path, text, changed, wrong, describedBy, obstacle, onChange }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const step = (by: number) => {
    const units = unitsOf(resource, text || '0');
    if (units !== null) onChange(quantityOf(resource, Math.max(0, units + by * stepOf(resource))));
  };
  return (
    <input
      className={classes['amount']}
      data-changed={changed}
      type="text"
      inputMode="decimal"
      autoComplete="off"
      spellCheck={false}
      aria-label={t('deferred:quotas.handle', { bound, resource, path })}
      aria-invalid={wrong}
      aria-describedby={wrong ? describedBy : undefined}
      placeholder={bound === 'max' ? '∞' : '0'}
      title={obstacle || undefined}
      readOnly={obstacle !== ''}
      aria-disabled={obstacle !== ''}
      value={text}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (obstacle || event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return;
        event.preventDefault();
        step(event.key === 'ArrowUp' ? 1 : -1);
      }}
    />
  );
}
