/** Names the clusters that cannot be used now, since when, and what becomes of their jobs; over every page. */
import { useQuery } from '@tanstack/react-query';
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { clustersQuery } from './queries.ts';
import classes from './Trouble.module.css';
import { troubleOf } from './trouble.ts';
import { TroubleText } from './TroubleText.tsx';

export function IncidentBanner() {
  const { t } = useTranslation();
  const { data } = useQuery(clustersQuery);
  const troubled = data?.results.filter((cluster) => troubleOf(cluster) !== null) ?? [];
  if (troubled.length === 0) return null;
  return (
    <section className={classes['banner']} aria-label={t('trouble.title')}>
      <TriangleAlert size={16} aria-hidden />
      <ul>
        {troubled.map((cluster) => (
          <li key={cluster.name}>
            <TroubleText cluster={cluster} named />
            <Link to={`/fleet/${encodeURIComponent(cluster.name)}`}>{t('trouble.open', { name: cluster.name })}</Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
