/** The signed-in user's passkeys: which there are, and the forms that add and remove one. */
import { Button, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { addPasskey, removePasskey } from '../api/passkeys.ts';
import type { SecondFactorState } from '../api/types.ts';
import { RecoveryCodes } from '../ui/Enrolment.tsx';
import { ErrorText, ServerText } from '../ui/ServerText.tsx';
import classes from './admin.module.css';

export function Passkeys({ state, onChange }: { state: SecondFactorState; onChange: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [name, setName] = useState('');
  const [code, setCode] = useState('');
  const add = useMutation({ mutationFn: () => addPasskey(name.trim(), code), onSuccess: onChange });
  const remove = useMutation({ mutationFn: (id: number) => removePasskey(id, code), onSuccess: onChange });
  const isHere = state.passkeys.some((each) => each.is_for_this_address);
  const error = add.error ?? remove.error;
  return (
    <>
      <h3>{t('deferred:secondFactor.passkeys')}</h3>
      {add.data && add.data.recovery_codes.length > 0 && <RecoveryCodes codes={add.data.recovery_codes} />}
      <ul>
        {state.passkeys.map((each) => (
          <li key={each.id}>
            {t('deferred:secondFactor.passkey', { name: each.name, site: each.site })}{' '}
            <Button
              size="compact-xs"
              variant="default"
              loading={remove.isPending}
              onClick={() => remove.mutate(each.id)}
            >
              {t('deferred:secondFactor.removePasskey', { name: each.name })}
            </Button>
          </li>
        ))}
      </ul>
      {error && <ErrorText error={error} />}
      {state.is_set && !isHere && (
        <TextInput
          size="xs"
          label={t('deferred:secondFactor.proof')}
          autoComplete="one-time-code"
          value={code}
          onChange={({ currentTarget: { value } }) => setCode(value)}
        />
      )}
      {state.passkeys_fault ? (
        <p className="cv-soft">
          <ServerText text={state.passkeys_fault} />
        </p>
      ) : (
        <form
          className={classes['form']}
          onSubmit={(event) => {
            event.preventDefault();
            add.mutate();
          }}
        >
          <TextInput
            size="xs"
            label={t('deferred:secondFactor.passkeyName')}
            value={name}
            maxLength={63}
            onChange={({ currentTarget: { value } }) => setName(value)}
          />
          <Button type="submit" size="xs" disabled={name.trim() === ''} loading={add.isPending}>
            {t('deferred:secondFactor.addPasskey')}
          </Button>
        </form>
      )}
    </>
  );
}
