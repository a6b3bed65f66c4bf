/** Cluster by cluster: whether the whole gang fits there, and if not, what is short and by how much. */
import { CircleCheck, CircleX } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Verdict } from '../api/types.ts';
import { amountsText } from '../fleet/resources.ts';
import { Link } from '../scope/Link.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';

export function VerdictTable({ verdicts }: { verdicts: Verdict[] }) {
  const { t, i18n } = useTranslation();
  return (
    <DataTable
      caption={t('job.verdicts')}
      rows={verdicts}
      rowKey={({ cluster }) => cluster}
      columns={[
        { id: 'cluster', header: t('jobs.column.cluster'), cell: ({ cluster }) => <Where cluster={cluster} /> },
        { id: 'fits', header: t('job.fits'), cell: ({ fits = false }) => <Fits fits={fits} /> },
        { id: 'short', header: t('job.short'), cell: ({ short = {} }) => amountsText(short, i18n.language) || '–' },
        { id: 'message', header: t('jobs.column.reason'), cell: ({ message }) => message },
      ]}
    />
  );
}

function Where({ cluster }: { cluster: string }) {
  return <Link to={`/fleet/${encodeURIComponent(cluster)}`}>{cluster}</Link>;
}

function Fits({ fits }: { fits: boolean }) {
  const { t } = useTranslation();
  return fits ? (
    <StateBadge tone="good" icon={CircleCheck} label={t('job.fitsYes')} />
  ) : (
    <StateBadge tone="neutral" icon={CircleX} label={t('job.fitsNo')} />
  );
}
