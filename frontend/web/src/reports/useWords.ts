/** Amounts of reports in the reader's language. */
import { useTranslation } from 'react-i18next';

import { formatDuration } from '../ui/duration.ts';

export function useWords() {
  const { t, i18n } = useTranslation('deferred');
  const format = (options: Intl.NumberFormatOptions) => new Intl.NumberFormat(i18n.language, options);
  const [hours, money, percent] = [
    format({ maximumFractionDigits: 1 }),
    format({ minimumFractionDigits: 2, maximumFractionDigits: 2 }),
    format({ style: 'percent', maximumFractionDigits: 1 }),
  ];
  const or = (value: number | null, words: (value: number) => string) => (value === null ? '–' : words(value));
  return {
    t,
    hours: (value: number) => (value > 0 && value < 0.05 ? `< ${hours.format(0.1)}` : hours.format(value)),
    money: (value: number) => money.format(value),
    percent: (value: number | null) => or(value, (known) => percent.format(known)),
    duration: (seconds: number | null) => or(seconds, (known) => formatDuration(known, i18n.language)),
    time: (at: string) => new Intl.DateTimeFormat(i18n.language, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at)),
    count: (value: number) => hours.format(value),
  };
}
