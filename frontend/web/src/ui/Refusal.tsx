/** The server's words beside what it refused, unless they are shown elsewhere: an ended session is the sign-in dialog's. */
import { Alert } from '@mantine/core';

import { ErrorText } from './ServerText.tsx';

export function Refusal({ error }: { error: Error | null }) {
  if (!error || ('toldElsewhere' in error && error.toldElsewhere)) return null;
  return (
    <Alert color="red" my="sm" role="alert">
      <ErrorText error={error} />
    </Alert>
  );
}
