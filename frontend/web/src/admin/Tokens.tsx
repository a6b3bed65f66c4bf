/** The signed-in user's bearer tokens, for scripts. The text of a new one is shown once. */
import { Alert, Button, NativeSelect, TextInput } from '@mantine/core';
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

type Rights = 'all' | 'read' | 'metrics';
interface Wanted {
  name: string;
  rights: Rights;
  namespaces: string;
}
const NOTHING: Wanted = { name: '', rights: 'all', namespaces: '' };
const RIGHTS = ['all', 'read', 'metrics'] as const;

export function Tokens() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data, error, refetch } = useQuery(tokensQuery);
  const [wanted, setWanted] = useState(NOTHING);
  const make = useAccessChange((given: Wanted) => api.post<MintedToken>('tokens/', newToken(given)), () => setWanted(NOTHING));
  return (
    <Panel title={t('deferred:access.tokens')} flush>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {data && data.results.length > 0 && <TokenTable rows={data.results} />}
      <form
        className={classes['form']}
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate(wanted);
        }}
      >
        <TextInput
          size="xs"
          label={t('deferred:access.tokenName')}
          value={wanted.name}
          error={make.error && <ErrorText error={make.error} />}
          onChange={({ currentTarget: { value } }) => setWanted({ ...wanted, name: value })}
        />
        <NativeSelect
          size="xs"
          label={t('deferred:access.tokenRights')}
          data={RIGHTS.map((value) => ({ value, label: t(`deferred:access.rights.${value}`) }))}
          value={wanted.rights}
          onChange={({ currentTarget: { value } }) => setWanted({ ...wanted, rights: value as Rights })}
        />
        {wanted.rights !== 'metrics' && (
          <TextInput
            size="xs"
            label={t('deferred:access.tokenNamespaces')}
            placeholder={t('deferred:access.tokenAllNamespaces')}
            value={wanted.namespaces}
            onChange={({ currentTarget: { value } }) => setWanted({ ...wanted, namespaces: value })}
          />
        )}
        <Button type="submit" size="xs" disabled={wanted.name.trim() === ''} loading={make.isPending}>
          {t('deferred:access.makeToken')}
        </Button>
        {make.data && (
          <Alert color="green" role="status">
            {t('deferred:access.tokenOnce')} <code className="cv-mono">{make.data.token}</code> <CopyText text={make.data.token} />
          </Alert>
        )}
      </form>
    </Panel>
  );
}

function newToken({ name, rights, namespaces }: Wanted) {
  const listed = namespaces.split(/[\s,]+/).filter(Boolean);
  const scope = {
    ...(rights === 'all' ? {} : { verbs: ['read'] }),
    ...(rights === 'metrics' ? { kinds: ['Metrics'] } : {}),
    ...(rights !== 'metrics' && listed.length > 0 ? { namespaces: listed } : {}),
  };
  return { name, scope: Object.keys(scope).length > 0 ? scope : null };
}

function scopeText({ scope }: Token): string {
  return Object.values(scope ?? {}).map((names) => names.join(', ')).join('; ');
}

function TokenTable({ rows }: { rows: Token[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <DataTable
      caption={t('deferred:access.tokens')}
      rows={rows}
      rowKey={({ id }) => String(id)}
      columns={[
        { id: 'name', header: t('deferred:access.tokenName'), cell: ({ name }) => name },
        { id: 'scope', header: t('deferred:access.tokenRights'), cell: (token) => scopeText(token) || t('deferred:access.rights.all') },
        { id: 'ends', header: t('deferred:access.ends'), cell: ({ expires_at: at }) => new Date(at).toLocaleDateString() },
        { id: 'made', header: t('deferred:access.made'), cell: ({ created_at: at }) => <Age since={at} ago /> },
        { id: 'used', header: t('deferred:access.used'), cell: ({ last_used_at: at }) => (at ? <Age since={at} ago /> : '–') },
        { id: 'by', header: t('deferred:access.mintedBy'), cell: (token) => <Origin token={token} rows={rows} /> },
        { id: 'revoke', header: t('jobs.column.actions'), quiet: true, align: 'end', cell: (token) => <Revoke token={token} /> },
      ]}
    />
  );
}

/** A token ends with the one that made it, which may be another user's. */
function Origin({ token: { parent_id: parent, minted_by: by }, rows }: { token: Token; rows: Token[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  if (parent === null) return by ?? '–';
  return t('deferred:access.byToken', { name: rows.find(({ id }) => id === parent)?.name ?? parent });
}

function Revoke({ token: { id, name, revoked_at: revoked } }: { token: Token }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [asked, setAsked] = useState(false);
  const revoke = useAccessChange(() => api.delete(`tokens/${id}/`), () => setAsked(false));
  if (revoked) return <span className="cv-soft">{t('deferred:access.revoked')}</span>;
  return (
    <>
      <Button size="compact-xs" variant="default" aria-label={t('deferred:access.revokeNamed', { name })} onClick={() => setAsked(true)}>
        {t('deferred:access.revoke')}
      </Button>
      {asked && (
        <ConfirmDialog
          title={`${t('deferred:access.revokeNamed', { name })}?`}
          body={t('deferred:access.revokeBody')}
          action={t('deferred:access.revoke')}
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
