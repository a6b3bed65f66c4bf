/** What an order would do, or did, job by job: each by its name, with what changes; and those it is refused for, with why. */
import { useTranslation } from 'react-i18next';

import { ServerText } from '../ui/ServerText.tsx';
import type { BulkDone } from './types.ts';
import classes from './ListTools.module.css';

export function OrderResult({ result, applied, stale }: { result: BulkDone; applied: boolean; stale: boolean }) {
  const { t } = useTranslation('deferred');
  const done = result.results.filter((each) => each.done);
  const refused = result.results.filter((each) => !each.done);
  const gpus = done.reduce((sum, each) => sum + each.gpus, 0);
  return (
    <div data-stale={stale || undefined} className={classes['result']} aria-busy={stale}>
      <p role="status">{t(applied ? 'order.did' : 'order.would', { done: result.done, refused: result.refused, gpus })}</p>
      {done.length > 0 && (
        <ul className={classes['named']} aria-label={t(applied ? 'order.done' : 'order.these')}>
          {done.map(({ id, namespace, name, gpus: held, before, after }) => (
            <li key={id}>
              <span className={classes['who']} title={`${namespace}/${name}`}>
                {namespace}/{name}
              </span>
              <span className="cv-soft cv-numbers">
                {(before || after) && before !== name ? `${before || '–'} → ${after || t('order.queued')}` : after ? `→ ${after}` : t('order.gpus', { count: held })}
              </span>
            </li>
          ))}
        </ul>
      )}
      {refused.length > 0 && (
        <>
          <p className={classes['not']}>{t('order.refused')}</p>
          <ul className={classes['refused']} aria-label={t('order.refused')}>
            {refused.map(({ id, namespace, name, message }) => (
              <li key={id}>
                <strong>{name ? `${namespace}/${name}` : id}</strong> <ServerText text={message} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
