/** The policies, and live how many jobs each claims; one opens to its manifest. */
import { Group, Modal, UnstyledButton } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Route } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { stringify } from 'yaml';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import type { Page, Policy } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useGo, useScope } from '../scope/useScope.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
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
  const go = useGo();
  const refused = useMay('apply') ? '' : t('jobs.notAllowed');
  return (
    <>
      <PageHeader title={t('deferred:policies.title')} note={data && t('deferred:policies.count', { count: data.count })}>
        <CopyAs commands={commandsOfPolicies(namespace)} />
        <ActionButton size="xs" variant="default" obstacle={refused} onClick={() => go('/submit', { state: { text: stringify(newPolicy(namespace)) } })}>
          {t('deferred:policies.make')}
        </ActionButton>
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
          <Group gap="xs">
            <CopyAs commands={commandsOfPolicy(open)} />
            <ActionButton size="xs" variant="default" obstacle={refused} onClick={() => go('/submit', { state: { text: stringify(open.manifest) } })}>
              {t('deferred:policies.edit')}
            </ActionButton>
          </Group>
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

/** To begin with: every PyTorchJob of the namespace, anywhere. The submit page says which jobs that would be, as it is written. */
function newPolicy(namespace: string): unknown {
  return {
    apiVersion: 'policy.one.alibabacloud.com/v1alpha1',
    kind: 'PropagationPolicy',
    metadata: { name: 'new-policy', namespace: namespace || 'default' },
    spec: { resourceSelectors: [{ apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob' }], placement: {} },
  };
}
