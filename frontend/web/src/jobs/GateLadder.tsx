/** The gates between a job and its pods: which it has passed, where it stands, what is still ahead. */
import { Check, CircleDot, Circle, type LucideIcon } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Gate } from './types.ts';
import classes from './GateLadder.module.css';

const ICONS: Record<Gate['passage'], LucideIcon> = { passed: Check, now: CircleDot, next: Circle };

export function GateLadder({ gates }: { gates: Gate[] }) {
  const { t } = useTranslation();
  return (
    <ol className={classes['ladder']} aria-label={t('job.gates')}>
      {gates.map(({ gate, passage }) => {
        const Icon = ICONS[passage];
        return (
          <li key={gate} data-passage={passage} aria-current={passage === 'now' ? 'step' : undefined}>
            <Icon size={14} aria-hidden />
            {t(`job.gate.${gate}`)}
            <span className="cv-hidden">: {t(`job.passage.${passage}`)}</span>
          </li>
        );
      })}
    </ol>
  );
}
