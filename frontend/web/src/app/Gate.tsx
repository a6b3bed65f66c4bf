/** Who may come in: the frame for who is signed in, the sign-in page for who is not, patience while the server is away. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';

import { connection, useConnection } from '../api/connection.ts';
import { meQuery, SignedOut } from '../api/me.ts';
import { Problem } from '../api/problem.ts';
import { Failed } from '../ui/Message.tsx';
import { fetchAllAgain } from './client.ts';
import { Frame } from './Frame.tsx';
import { ServerBanner } from './ServerBanner.tsx';

const SignInDialog = lazy(async () => ({ default: (await import('./SignInDialog.tsx')).SignInDialog }));
const SignInPage = lazy(async () => ({ default: (await import('./SignInPage.tsx')).SignInPage }));

export function Gate() {
  const { data: me, error, refetch } = useQuery(meQuery);
  const { session } = useConnection();
  if (me) {
    return (
      <>
        <Frame me={me} />
        <Suspense>{session === 'expired' && <SignInDialog username={me.username} />}</Suspense>
      </>
    );
  }
  if (isSignedOut(error)) {
    return (
      <Suspense>
        <SignInPage onSignedIn={comeIn} />
      </Suspense>
    );
  }
  return error ? <NotReady error={error} onRetry={() => void refetch()} /> : null;
}

function isSignedOut(error: Error | null): boolean {
  return error instanceof SignedOut || (error instanceof Problem && error.status === 401);
}

/** Not known yet who is asking: the server is away (the banner asks again by itself) or refuses to say. */
function NotReady({ error, onRetry }: { error: Error; onRetry: () => void }) {
  return (
    <>
      <ServerBanner />
      <Failed error={error} onRetry={onRetry} />
    </>
  );
}

function comeIn(): void {
  connection.sessionOpened();
  fetchAllAgain();
}
