/** Cluster by cluster: whether the whole gang fits there, and if not, what is short and by how much. */
import { CircleCheck, CircleX } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { useQuery } from '@tanstack/react-query';

import type { JobDetail, Verdict } from '../api/types.ts';
import { amountsText } from '../fleet/resources.ts';
import { VerdictText } from '../fleet/VerdictText.tsx';
import { Link } from '../scope/Link.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { Age } from '../ui/Age.tsx';
import { Panel } from '../ui/Panel.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import { explainQuery } from './queries.ts';

/** Of a job that waits, as it is now; of one that has its place, as it was when that was decided. Both say when. */
export function Verdicts({ job }: { job: JobDetail }) {
  const { t } = useTranslation();
  const { data } = useQuery(explainQuery(job.id));
  const verdicts = data?.clusters ?? job.reason?.clusters ?? [];
  const at = data?.at ?? job.reason?.at;
  if (verdicts.length === 0) return null;
  return (
    <Panel title={t('job.verdicts')} flush note={at && <Age since={at} ago />}>
      <VerdictTable verdicts={verdicts} />
    </Panel>
  );
}

function VerdictTable({ verdicts }: { verdicts: Verdict[] }) {
  const { t, i18n } = useTranslation();
  return (
    <DataTable
      caption={t('job.verdicts')}
      rows={verdicts}
      rowKey={({ cluster }) => cluster}
      columns={[
        { id: 'cluster', header: t('jobs.column.cluster'), cell: ({ cluster }) => <Where cluster={cluster} /> },
        { id: 'fits', header: t('job.fits'), cell: ({ fits = false }) => <Fits fits={fits} /> },
        { id: 'short', header: t('job.short'), cell: ({ missing = {} }) => amountsText(missing, i18n.language) || '–' },
        { id: 'message', header: t('jobs.column.reason'), cell: (verdict) => <VerdictText verdict={verdict} /> },
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
