/** Who may come in: the frame for who is signed in, the sign-in page for who is not, patience while the server is away. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';

import { connection, useConnection } from '../api/connection.ts';
import { meQuery } from '../api/me.ts';
import { Problem } from '../api/problem.ts';
import { fetchAllAgain } from './client.ts';
import { Frame } from './Frame.tsx';
import { ServerBanner } from './ServerBanner.tsx';

const SignInDialog = lazy(async () => ({ default: (await import('./SignInDialog.tsx')).SignInDialog }));
const SignInPage = lazy(async () => ({ default: (await import('./SignInPage.tsx')).SignInPage }));

export function Gate() {
  const { data: me, error } = useQuery(meQuery);
  const { session } = useConnection();
  if (me) {
    return (
      <>
        <Frame me={me} />
        <Suspense>{session === 'expired' && <SignInDialog username={me.username} />}</Suspense>
      </>
    );
  }
  if (error instanceof Problem) {
    return (
      <Suspense>
        <SignInPage onSignedIn={comeIn} />
      </Suspense>
    );
  }
  return error ? <ServerBanner /> : null;
}

function comeIn(): void {
  connection.sessionOpened();
  fetchAllAgain();
}
