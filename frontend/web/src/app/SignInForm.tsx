/** Name and password; what the server refuses is said beside the form. */
import { Alert, Button, PasswordInput, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { type Credentials, session } from '../api/me.ts';
import type { Me } from '../api/types.ts';
import { ErrorText } from '../ui/ServerText.tsx';
import classes from './SignInForm.module.css';

export function SignInForm({ username = '', onSignedIn }: { username?: string; onSignedIn: (me: Me) => void }) {
  const { t } = useTranslation();
  const { mutate, isPending, error } = useMutation({
    mutationFn: (credentials: Credentials) => session.open(credentials),
    onSuccess: onSignedIn,
  });
  return (
    <form
      className={classes['form']}
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        mutate(Object.fromEntries(given) as Record<keyof Credentials, string>);
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
      <Button type="submit" loading={isPending} fullWidth>
        {t('signIn.submit')}
      </Button>
    </form>
  );
}
