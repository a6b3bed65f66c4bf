/** The pods of the current attempt, as the member reports them. */
import { useQuery } from '@tanstack/react-query';
import { Box } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Pod } from '../api/types.ts';
import { DataTable, type Column } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { jobPodsQuery } from './queries.ts';

export function JobPods({ id }: { id: string }) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(jobPodsQuery(id));
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
    { id: 'phase', header: t('job.phase'), cell: ({ phase, reason }) => reason || phase },
    { id: 'ready', header: t('job.ready'), align: 'end', cell: ({ ready }) => ready },
    { id: 'node', header: t('cluster.node'), cell: ({ node }) => <span className="cv-mono">{node || '–'}</span> },
    { id: 'restarts', header: t('job.restarts'), align: 'end', cell: ({ restarts }) => restarts },
  ];
  return <DataTable caption={t('job.pods')} columns={columns} rows={data?.results} rowKey={({ uid }) => uid} />;
}
