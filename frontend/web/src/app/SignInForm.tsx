/** Name and password; what the server refuses is said beside the form. */
import { Alert, Button, PasswordInput, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { type Credentials, session, sessionQuery, type SignedIn } from '../api/me.ts';
import { type AskedSignature, sign } from '../api/passkeys.ts';
import { Problem, type SecondFactorWanted } from '../api/problem.ts';
import type { Me } from '../api/types.ts';
import { Enrolment, RecoveryCodes } from '../ui/Enrolment.tsx';
import { ErrorText } from '../ui/ServerText.tsx';
import classes from './SignInForm.module.css';

interface Asking extends Credentials {
  /** What a passkey is to sign, instead of a code. */
  asked?: AskedSignature;
}

function read(form: HTMLFormElement): Credentials {
  return Object.fromEntries(new FormData(form)) as unknown as Credentials;
}

export function SignInForm({ username = '', onSignedIn }: { username?: string; onSignedIn: (me: Me) => void }) {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState<SecondFactorWanted>();
  const [signedIn, setSignedIn] = useState<SignedIn>();
  const { data: offered } = useQuery(sessionQuery);
  const here = window.location.pathname + window.location.search;
  const { mutate, isPending, error } = useMutation({
    mutationFn: async ({ asked, ...credentials }: Asking) =>
      session.open(asked ? { ...credentials, passkey: await sign(asked) } : credentials),
    onSuccess: (me) => (me.recovery_codes ? setSignedIn(me) : onSignedIn(me)),
    onError: (refusal, { asked }) => {
      if (refusal instanceof Problem && refusal.secondFactor) setWanted(refusal.secondFactor);
      // A question is answered once: the next try asks anew.
      else if (asked) setWanted(undefined);
    },
  });
  if (signedIn?.recovery_codes) {
    return (
      <div className={classes['form']}>
        <RecoveryCodes codes={signedIn.recovery_codes} />
        <Button onClick={() => onSignedIn(signedIn)}>{t('secondFactor.goOn')}</Button>
      </div>
    );
  }
  return (
    <form
      className={classes['form']}
      onSubmit={(event) => {
        event.preventDefault();
        mutate(read(event.currentTarget));
      }}
    >
      {error && (
        <Alert color="red" role="alert">
          <ErrorText error={error} />
        </Alert>
      )}
      <TextInput
        name="username"
        label={t('signIn.username')}
        defaultValue={username}
        autoComplete="username"
        data-autofocus={username === '' || undefined}
        required
        withAsterisk={false}
      />
      <PasswordInput
        name="password"
        label={t('signIn.password')}
        autoComplete="current-password"
        data-autofocus={username !== '' || undefined}
        required
        withAsterisk={false}
        visibilityToggleButtonProps={{ 'aria-label': t('signIn.showPassword') }}
      />
      {wanted?.enrolment && <Enrolment {...wanted.enrolment} />}
      {wanted?.passkey && (
        <Button
          loading={isPending}
          fullWidth
          onClick={({ currentTarget: { form } }) => {
            if (form && wanted.passkey) mutate({ ...read(form), code: '', asked: wanted.passkey });
          }}
        >
          {t('secondFactor.usePasskey')}
        </Button>
      )}
      {wanted && (
        <TextInput
          name="code"
          label={t('secondFactor.code')}
          autoComplete="one-time-code"
          data-autofocus
          required
          withAsterisk={false}
        />
      )}
      <Button type="submit" loading={isPending} fullWidth>
        {t('signIn.submit')}
      </Button>
      {offered?.oidc && (
        <Button
          component="a"
          href={`/oidc/signin/?next=${encodeURIComponent(here)}`}
          variant="default"
          fullWidth
        >
          {t('signIn.company', { name: offered.oidc })}
        </Button>
      )}
    </form>
  );
}
