/** `convoy login`: the signed-in user hands a code to the command line that opened this page. */
import { Alert, Button, Group } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import { api } from '../api/client.ts';
import { meQuery } from '../api/me.ts';
import type { LoginCode } from '../api/types.ts';
import { CopyText } from '../ui/CopyAs.tsx';
import { Empty } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ErrorText } from '../ui/ServerText.tsx';

export default function LoginPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const [query] = useSearchParams();
  const { data: me } = useQuery(meQuery);
  const port = Number(query.get('port'));
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<LoginCode>('login/code/', asked(query)),
    onSuccess: ({ code }) => {
      if (isPort(port)) window.location.assign(`http://127.0.0.1:${port}/callback?${answer(code, query)}`);
    },
  });
  const name = query.get('name') ?? '';
  if (!name || !query.get('challenge')) return <Empty title={t('deferred:login.incomplete')}>{t('deferred:login.again')}</Empty>;
  return (
    <Panel title={t('deferred:login.title')}>
      <p>{t('deferred:login.body', { username: me?.username ?? '', name })}</p>
      <p className="cv-soft">{t('deferred:login.warning')}</p>
      {error && (
        <Alert color="red" role="alert">
          <ErrorText error={error} />
        </Alert>
      )}
      {!data && (
        <Button onClick={() => mutate()} loading={isPending}>
          {t('deferred:login.allow')}
        </Button>
      )}
      {data && isPort(port) && <p role="status">{t('deferred:login.sent')}</p>}
      {data && !isPort(port) && (
        <Group role="status" gap="xs">
          {t('deferred:login.copy')} <code className="cv-mono">{data.code}</code> <CopyText text={data.code} />
        </Group>
      )}
    </Panel>
  );
}

const asked = (query: URLSearchParams) => ({
  challenge: query.get('challenge') ?? '',
  name: query.get('name') ?? '',
  expires_in_s: Number(query.get('life')) || undefined,
});

const answer = (code: string, query: URLSearchParams) => new URLSearchParams({ code, state: query.get('state') ?? '' }).toString();

const isPort = (port: number) => Number.isInteger(port) && port > 0 && port < 65536;
