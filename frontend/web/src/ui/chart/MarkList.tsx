/** What happened in the time of a chart, in words: the latest first, as many as there is room for. */
import { useTranslation } from 'react-i18next';

import type { Mark } from './data.ts';
import { momentOf } from './moments.ts';
import classes from './Chart.module.css';

const MOST = 6;

export function MarkList({ marks, step }: { marks: Mark[]; step: number }) {
  const { t, i18n } = useTranslation('deferred');
  if (marks.length === 0) return null;
  const latest = [...marks].sort((left, right) => right.at - left.at);
  return (
    <ul className={classes['marks']} aria-label={t('marks')}>
      {latest.slice(0, MOST).map(({ at, text, tone }) => (
        <li key={`${at} ${text}`} data-tone={tone}>
          <span aria-hidden>{tone === 'bad' ? '▼' : '▲'}</span> {momentOf(at, step, i18n.language)} {text}
        </li>
      ))}
      {latest.length > MOST && <li>{t('moreMarks', { count: latest.length - MOST })}</li>}
    </ul>
  );
}
