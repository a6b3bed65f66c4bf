/** The users: made, searched, and changed one by one; the last fleet admin stays one. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Ban, CircleCheck, SearchX, UserPlus } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { User } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { PAGE_SIZE, useListState } from '../ui/list.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { SettledInput } from '../ui/SettledInput.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import classes from './admin.module.css';
import { lastAdminOf, usersQuery } from './queries.ts';
import { HeldRoles } from './HeldRoles.tsx';
import { CreateUser } from './UserForms.tsx';
import { UserMenu } from './UserMenu.tsx';

export function Users() {
  const { t } = useTranslation(['translation', 'deferred']);
  const list = useListState();
  const { data, error, refetch, isPlaceholderData } = useQuery(
    usersQuery({ search: list.search, page: list.page, page_size: PAGE_SIZE }),
  );
  const [creating, setCreating] = useState(false);
  const isEmpty = data?.count === 0;
  return (
    <Panel title={t('deferred:access.users')} flush>
      <div className={classes['form']}>
        <SettledInput label={t('deferred:access.search')} value={list.search} onSettle={(search) => list.set({ search })} />
        <Button size="xs" leftSection={<UserPlus size={14} aria-hidden />} onClick={() => setCreating(true)}>
          {t('deferred:access.create')}
        </Button>
        <p className="cv-soft">{t('deferred:access.lastAdminRule')}</p>
      </div>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {isEmpty && <Empty title={t('deferred:access.noUser')} icon={SearchX} />}
      {!(error && !data) && !isEmpty && <UserTable rows={data?.results} lastAdmin={data ? lastAdminOf(data) : ''} stale={isPlaceholderData} />}
      {data && <Pager page={list.page} pageSize={PAGE_SIZE} count={data.count} onPage={(page) => list.set({ page: String(page) })} />}
      {creating && <CreateUser onClose={() => setCreating(false)} />}
    </Panel>
  );
}

function UserTable({ rows, lastAdmin, stale }: { rows: User[] | undefined; lastAdmin: string; stale: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <DataTable
      caption={t('deferred:access.users')}
      rows={rows}
      rowKey={({ username }) => username}
      stale={stale}
      columns={[
        {
          id: 'user',
          header: t('deferred:access.user'),
          width: '22%',
          cell: ({ username }) => <Link to={`/audit?search=${encodeURIComponent(username)}`}>{username}</Link>,
        },
        { id: 'state', header: t('fleet.state'), width: '120px', cell: (user) => <Active user={user} /> },
        { id: 'roles', header: t('deferred:access.roles'), cell: (user) => <HeldRoles user={user} lastAdmin={lastAdmin === user.username} /> },
        {
          id: 'seen',
          header: t('deferred:access.lastLogin'),
          width: '160px',
          cell: ({ last_login: at }) => (at ? <Age since={at} ago /> : '–'),
        },
        {
          id: 'actions',
          header: t('jobs.column.actions'),
          quiet: true,
          align: 'end',
          cell: (user) => <UserMenu user={user} lastAdmin={lastAdmin === user.username} />,
        },
      ]}
    />
  );
}

function Active({ user: { active } }: { user: User }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return active ? (
    <StateBadge tone="good" icon={CircleCheck} label={t('deferred:access.active')} />
  ) : (
    <StateBadge tone="neutral" icon={Ban} label={t('deferred:access.disabled')} />
  );
}
