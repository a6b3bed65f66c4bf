/** A chart as a table: a row wherever a value changes or something happened, the latest first. */
import { useTranslation } from 'react-i18next';

import type { ChartProps } from './TimeChart.tsx';
import { changes, known, marksIn } from './data.ts';
import { momentOf } from './moments.ts';
import classes from './Chart.module.css';

export function ChartTable({ label, times, step, lines, marks = [], format }: ChartProps) {
  const { t, i18n } = useTranslation('deferred');
  const rows = changes(lines, times, marks, step).reverse();
  return (
    // It scrolls, so the keyboard has to get there.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={classes['scroller']} role="region" aria-label={t('tableOf', { label })} tabIndex={0}>
      <table className={classes['table']}>
        <caption>{t('tableNote')}</caption>
        <thead>
          <tr>
            <th scope="col">{t('from')}</th>
            {lines.map(({ id, label: name }) => (
              <th key={id} scope="col" data-align="end">
                {name}
              </th>
            ))}
            {marks.length > 0 && <th scope="col">{t('marks')}</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((i) => (
            <tr key={times[i]}>
              <th scope="row">{momentOf(times[i] ?? 0, step, i18n.language)}</th>
              {lines.map((line) => (
                <td key={line.id} data-align="end">
                  {format(known(line, i))}
                </td>
              ))}
              {marks.length > 0 && <td>{marksIn(marks, times[i] ?? 0, step).map(({ text }) => text).join(', ')}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
