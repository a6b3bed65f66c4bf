/** Clusters side by side: the winner, the runner-up, their scores and what those are made of, and why not the rest. */
import { CircleCheck, CircleX, Medal, Trophy } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { amountsText } from '../fleet/resources.ts';
import { VerdictText } from '../fleet/VerdictText.tsx';
import { Link } from '../scope/Link.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import type { Explained } from './types.ts';

export type Candidate = Pick<Explained, 'cluster' | 'code' | 'fits' | 'chosen' | 'message' | 'missing' | 'score' | 'never_fits' | 'score_parts'>;

export function PlacementTable({ candidates }: { candidates: Candidate[] }) {
  const { t, i18n } = useTranslation();
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 3 });
  const second = candidates.find(({ fits, chosen }) => fits && !chosen && candidates.some((other) => other.chosen));
  const sumOf = (parts: Candidate['score_parts']) =>
    Object.entries(parts).map(([name, value]) => `${name} ${number.format(value)}`).join(' + ');
  return (
    <DataTable
      caption={t('job.tab.placement')}
      rows={candidates}
      rowKey={({ cluster }) => cluster}
      columns={[
        {
          id: 'cluster',
          header: t('jobs.column.cluster'),
          cell: ({ cluster }) => <Link to={`/fleet/${encodeURIComponent(cluster)}`}>{cluster}</Link>,
        },
        { id: 'fits', header: t('job.fits'), cell: (row) => <Fits row={row} second={row === second} /> },
        {
          id: 'score',
          header: t('job.score'),
          align: 'end',
          cell: ({ fits, score }) => (fits ? number.format(score) : '–'),
        },
        { id: 'parts', header: t('job.parts'), cell: (row) => sumOf(row.score_parts) || '–' },
        { id: 'short', header: t('job.short'), cell: ({ missing }) => amountsText(missing, i18n.language) || '–' },
        { id: 'message', header: t('jobs.column.reason'), width: '36%', cell: (verdict) => <VerdictText verdict={verdict} /> },
      ]}
    />
  );
}

function Fits({ row, second }: { row: Candidate; second: boolean }) {
  const { t } = useTranslation();
  if (row.chosen) return <StateBadge tone="good" icon={Trophy} label={t('job.chosen')} />;
  if (second) return <StateBadge tone="info" icon={Medal} label={t('job.runnerUp')} />;
  if (row.fits) return <StateBadge tone="good" icon={CircleCheck} label={t('job.fitsYes')} />;
  const label = row.never_fits ? `${t('job.fitsNo')} (${t('job.never')})` : t('job.fitsNo');
  return <StateBadge tone="neutral" icon={CircleX} label={label} />;
}
