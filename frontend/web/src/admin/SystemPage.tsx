/** Whether the product itself is well: database, broker, workers, the watcher, and how long each has been silent. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CircleCheck, CircleX } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { CopyAs } from '../ui/CopyAs.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import { commandsOfSystem } from './commands.ts';
import { healthQuery } from './queries.ts';

export default function SystemPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data, error, refetch } = useQuery(healthQuery);
  return (
    <>
      <PageHeader title={t('deferred:system.title')} note={data && t(data.ok ? 'deferred:system.well' : 'deferred:system.unwell')}>
        <CopyAs commands={commandsOfSystem()} />
      </PageHeader>
      <Panel flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {!data && !error && <Skeleton height={220} />}
        {data && (
          <DataTable
            caption={t('deferred:system.title')}
            rows={data.checks}
            rowKey={({ name }) => name}
            columns={[
              { id: 'part', header: t('deferred:system.part'), width: '30%', cell: ({ name }) => name },
              { id: 'state', header: t('fleet.state'), width: '20%', cell: ({ ok }) => <Wellness ok={ok} /> },
              {
                id: 'detail',
                header: t('deferred:system.detail'),
                cell: ({ detail, age_s: age }) =>
                  detail ? <ServerText text={detail} /> : (typeof age === 'number' ? t('deferred:system.heard', { seconds: Math.round(age) }) : '–'),
              },
            ]}
          />
        )}
      </Panel>
    </>
  );
}

function Wellness({ ok }: { ok: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return <StateBadge tone={ok ? 'good' : 'bad'} icon={ok ? CircleCheck : CircleX} label={t(ok ? 'deferred:system.ok' : 'deferred:system.bad')} />;
}
