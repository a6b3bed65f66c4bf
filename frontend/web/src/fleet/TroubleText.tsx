/** What is wrong with a cluster in words, with what the network said one click away. */
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { Age } from '../ui/Age.tsx';
import classes from './Trouble.module.css';
import { silentSince } from './totals.ts';
import { troubleOf } from './trouble.ts';

export function TroubleText({ cluster, named = false }: { cluster: Cluster; named?: boolean }) {
  const { t } = useTranslation();
  const trouble = troubleOf(cluster);
  if (trouble === null) return null;
  return (
    <div className={classes['trouble']}>
      <span>
        {t(named ? `trouble.${trouble}Named` : `trouble.${trouble}`, { name: cluster.name })} · <Age since={silentSince(cluster)} exact />
      </span>
      <details>
        <summary>{t('trouble.details')}</summary>
        <code className="cv-mono">{cluster.message}</code>
        {cluster.raw !== '' && <code className="cv-mono">{cluster.raw}</code>}
      </details>
    </div>
  );
}
