/** How far the job's training is, as it reports itself. */
import { useTranslation } from 'react-i18next';

import type { Job } from '../api/types.ts';
import { Age } from '../ui/Age.tsx';
import { useNow } from '../ui/clock.ts';
import { formatDuration } from '../ui/duration.ts';
import { Panel } from '../ui/Panel.tsx';
import classes from './JobSummary.module.css';

type Progress = NonNullable<Job['progress']>;

export function JobProgress({ progress, running }: { progress: Progress; running: boolean }) {
  const { t, i18n, ready } = useTranslation('deferred', { useSuspense: false });
  const now = useNow(1_000);
  if (!ready) return null;
  const number = new Intl.NumberFormat(i18n.language, { maximumSignificantDigits: 4 });
  const whole = new Intl.NumberFormat(i18n.language);
  const { step, total, percent, eta_s: eta, loss, world_size: world, saved_step: saved, reported_at: at } = progress;
  const left = running && eta !== null ? Math.max(0, eta - (now - Date.parse(at)) / 1000) : null;
  const facts = [
    [t('training.step'), step === null ? null : total === null ? whole.format(step) : t('training.of', { step: whole.format(step), total: whole.format(total) })],
    [t('training.left'), left === null ? null : formatDuration(left, i18n.language)],
    [t('training.loss'), loss === null ? null : number.format(loss)],
    [t('training.ranks'), world],
    [t('training.saved'), saved === null ? null : whole.format(saved)],
  ] as const;
  return (
    <Panel title={t('training.title')}>
      {percent !== null && (
        <p>
          <progress value={percent} max={100} aria-label={t('training.title')} /> {t('training.percent', { percent })}
        </p>
      )}
      <dl className={classes['facts']}>
        {facts.map(
          ([name, value]) =>
            value !== null && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
        <div>
          <dt>{t('training.reported', { attempt: progress.attempt })}</dt>
          <dd>
            <Age since={at} ago exact />
          </dd>
        </div>
      </dl>
    </Panel>
  );
}
