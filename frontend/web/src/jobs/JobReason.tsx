/** Why the job is not running, in the server's own words with amounts. */
import { useTranslation } from 'react-i18next';

import type { JobState, Reason } from '../api/types.ts';
import { STATES } from './states.ts';
import classes from './JobReason.module.css';

export function JobReason({ reason, state }: { reason: Reason; state: JobState }) {
  const { t } = useTranslation();
  const { icon: Icon, tone } = STATES[state];
  return (
    <section className={classes['reason']} data-tone={tone} aria-label={t('job.why')}>
      <Icon size={18} aria-hidden />
      <div>
        <p>{reason.message}</p>
        <span className="cv-mono">{reason.code}</span>
      </div>
    </section>
  );
}
