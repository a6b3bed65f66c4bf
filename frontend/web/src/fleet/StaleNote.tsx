/** Over what is shown of a cluster that does not answer: it is as last seen, and how long ago that was. */
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { Age } from '../ui/Age.tsx';
import { isReachable, silentSince } from './totals.ts';

export function StaleNote({ cluster }: { cluster: Cluster | undefined }) {
  const { t } = useTranslation();
  if (!cluster || isReachable(cluster)) return null;
  return (
    <p role="status" className="cv-stale">
      {t('cluster.stale', { name: cluster.name })} <Age since={silentSince(cluster)} ago exact />
    </p>
  );
}
