/** Who may what: users with their roles, given and taken back here; and one's own tokens. */
import { Button, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import type { Grant, User } from '../api/types.ts';
import { Age } from '../ui/Age.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOfTokens, commandsOfUsers, commandsToGrant } from './commands.ts';
import classes from './admin.module.css';
import { useAccessChange, usersQuery } from './queries.ts';
import { Tokens } from './Tokens.tsx';

const ROLES = ['viewer', 'editor', 'quota-admin', 'fleet-admin'];

export default function AccessPage() {
  const { t } = useTranslation();
  const may = useMay('grant');
  return (
    <>
      <PageHeader title={t('access.title')}>
        <CopyAs commands={may ? commandsOfUsers() : commandsOfTokens()} />
      </PageHeader>
      <div className={classes['stack']}>
        {may ? <Users /> : <Panel title={t('access.users')}>{t('access.notYours')}</Panel>}
        <Tokens />
      </div>
    </>
  );
}

function Users() {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(usersQuery);
  return (
    <Panel title={t('access.users')} flush>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {!(error && !data) && (
        <DataTable
          caption={t('access.users')}
          rows={data?.results}
          rowKey={({ username }) => username}
          columns={[
            { id: 'user', header: t('access.user'), width: '22%', cell: ({ username }) => username },
            { id: 'roles', header: t('access.roles'), cell: (user) => <Roles user={user} /> },
            {
              id: 'seen',
              header: t('access.lastLogin'),
              width: '160px',
              cell: ({ last_login: at }) => (at ? <Age since={at} ago /> : '–'),
            },
          ]}
        />
      )}
      <GrantForm users={data?.results.map(({ username }) => username) ?? []} />
    </Panel>
  );
}

function Roles({ user }: { user: User }) {
  const { t } = useTranslation();
  return (
    <div className={classes['grants']}>
      {user.superuser && <span>{t('access.superuser')}</span>}
      {user.roles.map((held) => (
        <TakeBack key={held.id} user={user.username} id={held.id} role={held.namespace ? t('access.in', { role: held.role, namespace: held.namespace }) : held.role} />
      ))}
    </div>
  );
}

function TakeBack({ user, id, role }: { user: string; id: number; role: string }) {
  const { t } = useTranslation();
  const change = useAccessChange(
    () => api.delete(`grants/${id}/`),
    () => undefined,
  );
  return (
    <Button
      size="compact-xs"
      variant="light"
      color="gray"
      rightSection={<X size={12} aria-hidden />}
      loading={change.isPending}
      aria-label={t('access.takeBack', { user, role })}
      title={change.error?.message ?? t('access.takeBack', { user, role })}
      onClick={() => change.mutate(undefined)}
    >
      {role}
    </Button>
  );
}

function GrantForm({ users }: { users: string[] }) {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState({ user: '', role: 'viewer', namespace: '' });
  const give = useAccessChange(
    (given: typeof wanted) => api.post<Grant>('grants/', given),
    () => setWanted({ ...wanted, user: '' }),
  );
  return (
    <form
      className={classes['form']}
      onSubmit={(event) => {
        event.preventDefault();
        give.mutate(wanted);
      }}
    >
      <Select size="xs" label={t('access.user')} data={users} value={wanted.user || null} searchable onChange={(user) => setWanted({ ...wanted, user: user ?? '' })} />
      <Select size="xs" label={t('access.role')} data={ROLES} value={wanted.role} allowDeselect={false} onChange={(role) => setWanted({ ...wanted, role: role ?? 'viewer' })} />
      <TextInput
        size="xs"
        label={t('access.namespace')}
        placeholder={t('access.everywhere')}
        value={wanted.namespace}
        onChange={({ currentTarget: { value } }) => setWanted({ ...wanted, namespace: value })}
        error={give.error?.message}
      />
      <CopyAs commands={commandsToGrant(wanted)} />
      <Button type="submit" size="xs" disabled={wanted.user === ''} loading={give.isPending}>
        {t('access.give')}
      </Button>
    </form>
  );
}
