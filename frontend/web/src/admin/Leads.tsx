/** Team leads: users who change the quota tree below one node, named and removed by those who may change the whole tree. */
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Users } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { Lead } from '../api/types.ts';
import { Problem } from '../api/problem.ts';
import { treeQuery } from '../quotas/queries.ts';
import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import { commandsToUnlead } from './commands.ts';
import { leadsQuery, useAccessChange } from './queries.ts';
import classes from './admin.module.css';

export function Leads() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data, error, refetch } = useQuery(leadsQuery);
  const tree = useQuery(treeQuery);
  const whole = tree.data?.nodes[0]?.may_edit ?? false;
  const hidden = error instanceof Problem && error.status === 403;
  if (hidden) return null;
  return (
    <Panel title={t('deferred:access.leads')} flush>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {data?.count === 0 && (
        <Empty title={t('deferred:access.noLeads')} icon={Users}>
          {t('deferred:access.leadsNote')}
        </Empty>
      )}
      {!(error && !data) && data?.count !== 0 && <LeadTable rows={data?.results} whole={whole} />}
      {whole && tree.data && <LeadForm paths={tree.data.nodes.map(({ path }) => path)} />}
    </Panel>
  );
}

function LeadTable({ rows, whole }: { rows: Lead[] | undefined; whole: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <DataTable
      caption={t('deferred:access.leads')}
      rows={rows}
      rowKey={({ id }) => String(id)}
      columns={[
        { id: 'user', header: t('deferred:access.user'), cell: ({ user }) => user },
        { id: 'path', header: t('deferred:access.leadsOf'), cell: ({ path }) => <Link to={`/quotas?node=${encodeURIComponent(path)}`}>{path}</Link> },
        { id: 'actions', header: t('jobs.column.actions'), quiet: true, align: 'end', cell: (lead) => <Remove lead={lead} whole={whole} /> },
      ]}
    />
  );
}

function Remove({ lead: { id, user, path }, whole }: { lead: Lead; whole: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [asked, setAsked] = useState(false);
  const remove = useAccessChange(() => api.delete(`leads/${id}/`), () => setAsked(false));
  const name = t('deferred:access.removeLead', { user, path });
  return (
    <>
      <ActionButton size="compact-xs" variant="default" label={name} obstacle={whole ? '' : t('deferred:help.needs', { role: 'quota-admin' })} onClick={() => setAsked(true)}>
        {t('deferred:access.takeBackAction')}
      </ActionButton>
      {asked && (
        <ConfirmDialog
          title={`${name}?`}
          body={t('deferred:access.removeLeadBody')}
          action={t('deferred:access.takeBackAction')}
          dangerous
          commands={commandsToUnlead(user, path)}
          pending={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(undefined)}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}

function LeadForm({ paths }: { paths: string[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [user, setUser] = useState('');
  const [path, setPath] = useState(paths[0] ?? '');
  const add = useAccessChange(() => api.post<Lead>('leads/', { user, path }), () => setUser(''));
  return (
    <form
      className={classes['form']}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(undefined);
      }}
    >
      <TextInput size="xs" label={t('signIn.username')} value={user} onChange={(event) => setUser(event.currentTarget.value)} />
      <NativeSelect size="xs" label={t('deferred:access.leadsOf')} data={paths} value={path} onChange={(event) => setPath(event.currentTarget.value)} />
      <Button type="submit" size="xs" disabled={user.trim() === ''} loading={add.isPending}>
        {t('deferred:access.nameLead')}
      </Button>
      {add.error && (
        <div role="alert">
          <ErrorText error={add.error} />
        </div>
      )}
    </form>
  );
}
