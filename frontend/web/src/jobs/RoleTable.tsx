/** The gang: every role, how many of it, and what one pod asks for. */
import { useTranslation } from 'react-i18next';

import type { Amounts, JobRole } from '../api/types.ts';
import { formatAmount, shortResource } from '../fleet/resources.ts';
import { DataTable } from '../ui/DataTable.tsx';

export function RoleTable({ roles }: { roles: JobRole[] }) {
  const { t, i18n } = useTranslation();
  return (
    <DataTable
      caption={t('job.gang')}
      rows={roles}
      rowKey={({ name }) => name}
      columns={[
        { id: 'role', header: t('job.role'), cell: ({ name }) => name },
        { id: 'replicas', header: t('job.replicas'), align: 'end', cell: ({ replicas }) => replicas },
        { id: 'request', header: t('job.request'), cell: ({ request }) => requestText(request, i18n.language) },
      ]}
    />
  );
}

function requestText(request: Amounts, language: string): string {
  return Object.entries(request)
    .filter(([resource]) => resource !== 'pods')
    .map(([resource, amount]) => `${formatAmount(resource, amount, language)} ${shortResource(resource)}`)
    .join(', ');
}
