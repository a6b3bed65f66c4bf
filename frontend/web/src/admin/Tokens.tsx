/** The signed-in user's bearer tokens, for scripts. The text of a new one is shown once. */
import { Alert, Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { MintedToken, Token } from '../api/types.ts';
import { Age } from '../ui/Age.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { CopyText } from '../ui/CopyAs.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import classes from './admin.module.css';
import { tokensQuery, useAccessChange } from './queries.ts';

export function Tokens() {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(tokensQuery);
  const [name, setName] = useState('');
  const make = useAccessChange((given: string) => api.post<MintedToken>('tokens/', { name: given }), () => setName(''));
  return (
    <Panel title={t('access.tokens')} flush>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {data && data.results.length > 0 && <TokenTable rows={data.results} />}
      <form
        className={classes['form']}
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate(name);
        }}
      >
        <TextInput
          size="xs"
          label={t('access.tokenName')}
          value={name}
          error={make.error && <ErrorText error={make.error} />}
          onChange={({ currentTarget: { value } }) => setName(value)}
        />
        <Button type="submit" size="xs" disabled={name.trim() === ''} loading={make.isPending}>
          {t('access.makeToken')}
        </Button>
        {make.data && (
          <Alert color="green" role="status">
            {t('access.tokenOnce')} <code className="cv-mono">{make.data.token}</code> <CopyText text={make.data.token} />
          </Alert>
        )}
      </form>
    </Panel>
  );
}

function TokenTable({ rows }: { rows: Token[] }) {
  const { t } = useTranslation();
  return (
    <DataTable
      caption={t('access.tokens')}
      rows={rows}
      rowKey={({ id }) => String(id)}
      columns={[
        { id: 'name', header: t('access.tokenName'), cell: ({ name }) => name },
        { id: 'made', header: t('access.made'), cell: ({ created_at: at }) => <Age since={at} ago /> },
        { id: 'used', header: t('access.used'), cell: ({ last_used_at: at }) => (at ? <Age since={at} ago /> : '–') },
        { id: 'revoke', header: t('jobs.column.actions'), quiet: true, align: 'end', cell: (token) => <Revoke token={token} /> },
      ]}
    />
  );
}

function Revoke({ token: { id, name, revoked_at: revoked } }: { token: Token }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState(false);
  const revoke = useAccessChange(() => api.delete(`tokens/${id}/`), () => setAsked(false));
  if (revoked) return <span className="cv-soft">{t('access.revoked')}</span>;
  return (
    <>
      <Button size="compact-xs" variant="default" aria-label={t('access.revokeNamed', { name })} onClick={() => setAsked(true)}>
        {t('access.revoke')}
      </Button>
      {asked && (
        <ConfirmDialog
          title={`${t('access.revokeNamed', { name })}?`}
          body={t('access.revokeBody')}
          action={t('access.revoke')}
          dangerous
          pending={revoke.isPending}
          error={revoke.error}
          onConfirm={() => revoke.mutate(undefined)}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}
