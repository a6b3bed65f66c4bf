/** That copies of earlier attempts may run beside the current one: said before everything else, because they may write too. */
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { OtherCopy } from '../api/types.ts';
import classes from './WhyWaiting.module.css';

export function OtherCopies({ copies }: { copies: readonly OtherCopy[] }) {
  const { t, ready } = useTranslation('deferred', { useSuspense: false });
  if (copies.length === 0 || !ready) return null;
  return (
    <section className={classes['why']} data-tone="warn" aria-label={t('copies.title')}>
      <TriangleAlert size={18} aria-hidden />
      <div className={classes['body']}>
        {copies.map(({ code, attempt, cluster, current }) => (
          <p key={attempt}>{t(`copies.${code}`, { attempt, cluster, current })}</p>
        ))}
      </div>
    </section>
  );
}
