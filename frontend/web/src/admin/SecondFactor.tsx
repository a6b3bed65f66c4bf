/** The signed-in user's second factor: set up with an authenticator app, removed with a code of it. */
import { Button, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { EnrolmentStart, FactorCodes, SecondFactorState } from '../api/types.ts';
import { Enrolment, RecoveryCodes } from '../ui/Enrolment.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import classes from './admin.module.css';

const stateQuery = {
  queryKey: ['second-factor'],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.get<SecondFactorState>('second-factor/', { signal }),
};

export function SecondFactor() {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(stateQuery);
  const again = () => void refetch();
  const begin = useMutation({ mutationFn: () => api.post<EnrolmentStart>('second-factor/') });
  const confirm = useMutation({
    mutationFn: (code: string) => api.put<FactorCodes>('second-factor/', { code }),
    onSuccess: again,
  });
  const remove = useMutation({ mutationFn: (code: string) => api.post('second-factor/code/', { code }), onSuccess: again });
  if (!data) return error ? <Failed error={error} onRetry={again} /> : null;
  const begun = data.is_set ? undefined : begin.data;
  return (
    <Panel title={t('secondFactor.title')}>
      <p>{data.is_set ? t('secondFactor.on', { count: data.recovery_codes_left }) : t('secondFactor.off')}</p>
      {confirm.data && data.is_set && <RecoveryCodes codes={confirm.data.recovery_codes} />}
      {begin.error && <ErrorText error={begin.error} />}
      {!data.is_set && !begun && (
        <Button size="xs" onClick={() => begin.mutate()} loading={begin.isPending}>
          {t('secondFactor.begin')}
        </Button>
      )}
      {begun && <Enrolment {...begun} />}
      {begun && <CodeForm label={t('secondFactor.confirm')} sending={confirm} />}
      {data.is_set && !data.is_required && <CodeForm label={t('secondFactor.remove')} sending={remove} />}
    </Panel>
  );
}

interface Sending {
  mutate: (code: string) => void;
  error: Error | null;
  isPending: boolean;
}

function CodeForm({ label, sending }: { label: string; sending: Sending }) {
  const { t } = useTranslation();
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
