/** How long ago something was (or how long it took), moving by itself; the exact time on hover. */
import { useTranslation } from 'react-i18next';

import { useNow } from './clock.ts';
import { formatDuration } from './duration.ts';

const SLOW_MS = 15_000;
/** Up to this age the seconds are shown to pass. */
const YOUNG_MS = 120_000;

interface Props {
  since: string;
  until?: string | null;
  /** "3m ago" rather than "3m". */
  ago?: boolean;
  /** To the second however old, beside other clocks of the page. */
  exact?: boolean;
}

export function Age({ since, until, ago = false, exact = false }: Props) {
  const { t, i18n } = useTranslation();
  const start = Date.parse(since);
  const slowly = useNow(SLOW_MS);
  const young = exact || slowly - start < YOUNG_MS;
  const now = useNow(young ? 1_000 : SLOW_MS);
  const end = until ? Date.parse(until) : now;
  const text = formatDuration((end - start) / 1000, i18n.language);
  return (
    <time dateTime={since} title={new Date(start).toLocaleString(i18n.language)} className="cv-age">
      {ago ? t('common.ago', { age: text }) : text}
    </time>
  );
}
