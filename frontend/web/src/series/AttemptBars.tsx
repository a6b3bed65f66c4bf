/** Jobs as lines of bars: hatched while the GPUs of an attempt were held, filled while it ran. Each bar says itself in words. */
import { useTranslation } from 'react-i18next';

import type { PastAttempts } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { momentOf } from '../ui/chart/moments.ts';
import { type Bar, barsOf } from './bars.ts';
import classes from './AttemptBars.module.css';

/** A moment to the second; a dash where there is none. */
export function useMoments(): (at: string | null) => string {
  const { i18n } = useTranslation('deferred');
  return (at) => (at === null ? '–' : momentOf(Date.parse(at) / 1000, 1, i18n.language));
}

export function AttemptBars({ answer, label }: { answer: PastAttempts; label: string }) {
  const { t } = useTranslation('deferred');
  const moments = useMoments();
  const words = ({ attempt }: Bar) =>
    t('jobs.bar', {
      number: attempt.number,
      cluster: attempt.cluster,
      gpus: attempt.gpus,
      placed: moments(attempt.placed_at),
      started: moments(attempt.started_at),
      ended: moments(attempt.ended_at),
    }) + (attempt.outcome && ` (${attempt.outcome})`);
  return (
    <>
      <ul className={classes['lines']} aria-label={label}>
        {barsOf(answer.results, Date.parse(answer.start), Date.parse(answer.end)).map(({ job, name, bars }) => (
          <li key={job}>
            <Link to={`/jobs/${job}`} title={name}>
              {name}
            </Link>
            <div className={classes['track']}>
              {bars.map((bar) => (
                <span
                  key={bar.attempt.number}
                  role="img"
                  aria-label={words(bar)}
                  title={words(bar)}
                  data-outcome={bar.attempt.outcome}
                  style={{ left: `${bar.left}%`, width: `${bar.held + bar.ran}%` }}
                >
                  <i style={{ flexGrow: bar.held }} data-look="held" />
                  <i style={{ flexGrow: bar.ran }} data-look="ran" />
                </span>
              ))}
            </div>
          </li>
        ))}
      </ul>
      <p className={classes['ends']}>
        <span>{moments(answer.start)}</span>
        <span>{moments(answer.end)}</span>
      </p>
    </>
  );
}
