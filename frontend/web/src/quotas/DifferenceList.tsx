/** What differs between two trees, field by field: before, after. */
import { ArrowRight } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Difference } from './draft.ts';
import classes from './DraftPanel.module.css';

export function DifferenceList({ differences }: { differences: Difference[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <ul className={classes['list']}>
      {differences.map((each) => (
        <li key={`${each.path} ${each.field}`}>
          <code className="cv-mono">{each.field ? `${each.path} ${each.field}` : t(`deferred:quotas.difference.${kindOf(each)}`)}</code>
          <span className={classes['change']}>
            {each.before ? <del>{each.before}</del> : <span className="cv-soft">{t('deferred:quotas.none')}</span>}
            <ArrowRight size={12} role="img" aria-label={t('deferred:quotas.becomes')} />
            {each.after ? <ins>{each.after}</ins> : <span className="cv-soft">{t('deferred:quotas.none')}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function kindOf({ before, after }: Difference): 'added' | 'removed' | 'moved' {
  if (!before) return 'added';
  return after ? 'moved' : 'removed';
}
