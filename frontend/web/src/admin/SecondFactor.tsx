/** The signed-in user's second factor: an authenticator app, which is removed with a code of it, and passkeys. */
import { Button, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { confirmApp } from '../api/passkeys.ts';
import type { EnrolmentStart, SecondFactorState } from '../api/types.ts';
import { Enrolment, RecoveryCodes } from '../ui/Enrolment.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import { Passkeys } from './Passkeys.tsx';
import classes from './admin.module.css';

const stateQuery = {
  queryKey: ['second-factor'],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.get<SecondFactorState>('second-factor/', { signal }),
};

export function SecondFactor() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data, error, refetch } = useQuery(stateQuery);
  const again = () => void refetch();
  const begin = useMutation({ mutationFn: () => api.post<EnrolmentStart>('second-factor/') });
  const confirm = useMutation({
    mutationFn: (code: string) => confirmApp(code, (data?.passkeys.length ?? 0) > 0),
    onSuccess: again,
  });
  const remove = useMutation({ mutationFn: (code: string) => api.post('second-factor/code/', { code }), onSuccess: again });
  if (!data) return error ? <Failed error={error} onRetry={again} /> : null;
  const begun = data.has_app ? undefined : begin.data;
  return (
    <Panel title={t('deferred:secondFactor.title')}>
      <p>{data.is_set ? t('deferred:secondFactor.on', { count: data.recovery_codes_left }) : t('deferred:secondFactor.off')}</p>
      {confirm.data && data.has_app && confirm.data.recovery_codes.length > 0 && <RecoveryCodes codes={confirm.data.recovery_codes} />}
      {begin.error && <ErrorText error={begin.error} />}
      {!data.has_app && !begun && (
        <Button size="xs" onClick={() => begin.mutate()} loading={begin.isPending}>
          {t('deferred:secondFactor.begin')}
        </Button>
      )}
      {begun && <Enrolment {...begun} />}
      {begun && <CodeForm label={t('deferred:secondFactor.confirm')} sending={confirm} />}
      {data.has_app && (!data.is_required || data.passkeys.length > 0) && <CodeForm label={t('deferred:secondFactor.remove')} sending={remove} />}
      <Passkeys state={data} onChange={again} />
    </Panel>
  );
}

interface Sending {
  mutate: (code: string) => void;
  error: Error | null;
  isPending: boolean;
}

function CodeForm({ label, sending }: { label: string; sending: Sending }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [code, setCode] = useState('');
  return (
    <form
      className={classes['form']}
      onSubmit={(event) => {
        event.preventDefault();
        sending.mutate(code);
      }}
    >
      <TextInput
        size="xs"
        label={t('secondFactor.code')}
        autoComplete="one-time-code"
        value={code}
        error={sending.error && <ErrorText error={sending.error} />}
        onChange={({ currentTarget: { value } }) => setCode(value)}
      />
      <Button type="submit" size="xs" disabled={code.trim() === ''} loading={sending.isPending}>
        {label}
      </Button>
    </form>
  );
}
