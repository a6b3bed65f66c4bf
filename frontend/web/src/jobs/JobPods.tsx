/** The pods of the current attempt, as the member reports them. */
import { useQuery } from '@tanstack/react-query';
import { Box } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { JobDetail, Pod } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import { isReachable, silentSince } from '../fleet/totals.ts';
import { Age } from '../ui/Age.tsx';
import { DataTable, type Column } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { jobPodsQuery } from './queries.ts';

export function JobPods({ job: { id } }: { job: JobDetail }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(jobPodsQuery(id));
  const clusters = useQuery(clustersQuery).data?.results ?? [];
  const away = clusters.filter((each) => !isReachable(each) && data?.results.some(({ cluster }) => cluster === each.name));
  const isStale = ({ cluster }: Pod) => away.some(({ name }) => name === cluster);
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (data?.results.length === 0) {
    return (
      <Empty title={t('job.noPodsTitle')} icon={Box}>
        {t('job.noPodsBody')}
      </Empty>
    );
  }
  const columns: Column<Pod>[] = [
    { id: 'name', header: t('job.pod'), cell: ({ name }) => <span className="cv-mono">{name}</span> },
    { id: 'role', header: t('job.role'), cell: ({ role }) => role },
    {
      id: 'phase',
      header: t('job.phase'),
      cell: (pod) => (
        <>
          {isStale(pod) ? t('job.stalePhase', { phase: pod.reason || pod.phase }) : pod.reason || pod.phase}
          {pod.message && <div className="cv-soft">{pod.message}</div>}
        </>
      ),
    },
    { id: 'ready', header: t('job.ready'), align: 'end', cell: ({ ready }) => ready },
    { id: 'node', header: t('cluster.node'), cell: ({ node }) => <span className="cv-mono">{node || '–'}</span> },
    { id: 'restarts', header: t('job.restarts'), align: 'end', cell: ({ restarts }) => restarts },
  ];
  return (
    <>
      {away.map((cluster) => (
        <p key={cluster.name} role="status" className="cv-stale">
          {t('job.stalePods', { cluster: cluster.name })} <Age since={silentSince(cluster)} ago exact />
        </p>
      ))}
      <DataTable caption={t('job.pods')} columns={columns} rows={data?.results} rowKey={({ uid }) => uid} />
    </>
  );
}
