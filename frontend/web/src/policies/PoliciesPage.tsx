/** The policies, and live how many jobs each claims; one opens to its manifest. */
import { Modal, UnstyledButton } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Route } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { stringify } from 'yaml';

import { api } from '../api/client.ts';
import type { Page, Policy } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOfPolicies, commandsOfPolicy } from './commands.ts';
import classes from './PoliciesPage.module.css';

const policiesQuery = (namespace: string) =>
  queryOptions({
    queryKey: ['policies', namespace],
    queryFn: ({ signal }) => api.get<Page<Policy>>('policies/', { query: { namespace, page_size: 200 }, signal }),
    refetchInterval: 30_000,
  });

export default function PoliciesPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { namespace } = useScope();
  const { data, error, refetch } = useQuery(policiesQuery(namespace));
  const [open, setOpen] = useState<Policy | null>(null);
  return (
    <>
      <PageHeader title={t('deferred:policies.title')} note={data && t('deferred:policies.count', { count: data.count })}>
        <CopyAs commands={commandsOfPolicies(namespace)} />
      </PageHeader>
      <Panel flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {data?.count === 0 && (
          <Empty title={t('deferred:policies.none')} icon={Route}>
            {t('deferred:policies.noneBody')} <Link to="/submit">{t('rooms.submit')}</Link>
          </Empty>
        )}
        {!(error && !data) && data?.count !== 0 && <PolicyTable rows={data?.results} onOpen={setOpen} />}
      </Panel>
      {open && (
        <Modal opened onClose={() => setOpen(null)} title={`${open.kind} ${open.name}`} size="lg" closeButtonProps={{ 'aria-label': t('common.close') }}>
          <CopyAs commands={commandsOfPolicy(open)} />
          <pre className={classes['manifest']}>{stringify(open.manifest)}</pre>
        </Modal>
      )}
    </>
  );
}

function PolicyTable({ rows, onOpen }: { rows: Policy[] | undefined; onOpen: (policy: Policy) => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <DataTable
      caption={t('deferred:policies.title')}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          id: 'name',
          header: t('deferred:policies.policy'),
          cell: (policy) => (
            <UnstyledButton className={classes['open']} onClick={() => onOpen(policy)}>
              {policy.name}
            </UnstyledButton>
          ),
        },
        { id: 'kind', header: t('jobs.filter.kind'), cell: ({ kind }) => kind },
        { id: 'namespace', header: t('jobs.filter.namespace'), cell: ({ namespace }) => namespace || t('deferred:policies.everywhere') },
        {
          id: 'jobs',
          header: t('deferred:policies.jobs'),
          align: 'end',
          cell: ({ name, namespace, jobs }) => (
            <Link to={`/jobs?${new URLSearchParams({ policy: name, namespace })}`}>{jobs}</Link>
          ),
        },
        { id: 'age', header: t('jobs.column.age'), align: 'end', cell: ({ created_at: at }) => <Age since={at} /> },
      ]}
    />
  );
}
