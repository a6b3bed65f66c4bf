/** The gang: every role, how many of it, and what one pod asks for. */
import { useTranslation } from 'react-i18next';

import type { JobRole } from '../api/types.ts';
import { amountsText } from '../fleet/resources.ts';
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
        { id: 'request', header: t('job.request'), cell: ({ request }) => amountsText(request, i18n.language) },
      ]}
    />
  );
}
