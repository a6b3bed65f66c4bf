/** How a cluster that would join answered: passed, failed and what to mend, not reached. */
import { Loader } from '@mantine/core';
import { CircleCheck, CircleDashed, CircleX } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Check } from '../api/types.ts';
import { Refusal } from '../ui/Refusal.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import classes from './JoinPage.module.css';

const ORDER: Check['name'][] = ['name', 'kubeconfig', 'answer', 'kinds', 'rights', 'new'];
const ICONS = { passed: CircleCheck, failed: CircleX, open: CircleDashed };

interface Props {
  checks: Check[] | undefined;
  busy: boolean;
  error: Error | null;
}

export function CheckList({ checks = [], busy, error }: Props) {
  const { t } = useTranslation('deferred');
  return (
    <>
      <ol className={classes['checks']} aria-live="polite" aria-busy={busy}>
        {ORDER.map((name) => {
          const check = checks.find((each) => each.name === name);
          const look = check ? (check.ok ? 'passed' : 'failed') : 'open';
          const Icon = ICONS[look];
          return (
            <li key={name} data-look={look}>
              {busy ? <Loader size={17} aria-hidden /> : <Icon size={18} aria-hidden />}
              <div>
                <strong>{t(`join.checks.${name}`)}</strong> <span className="cv-hidden">{t(`join.${look}`)}</span>
                <div className={classes['detail']}>{check && <ServerText text={check.detail} />}</div>
              </div>
            </li>
          );
        })}
      </ol>
      <Refusal error={error} />
    </>
  );
}
