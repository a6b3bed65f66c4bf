/** What the colours and marks of the bars mean. */
import { useTranslation } from 'react-i18next';

import classes from './Legend.module.css';

const PARTS = ['used', 'borrowed', 'promised', 'lent', 'min', 'max'] as const;

export function Legend() {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <ul className={classes['legend']}>
      {PARTS.map((part) => (
        <li key={part}>
          <span data-part={part} aria-hidden />
          {t(`deferred:quotas.legend.${part}`)}
        </li>
      ))}
    </ul>
  );
}
