/** The first page of a visitor who is not signed in. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { sessionQuery } from '../api/me.ts';
import { Brand } from './Brand.tsx';
import { ServerBanner } from './ServerBanner.tsx';
import { SignInForm } from './SignInForm.tsx';
import classes from './SignInPage.module.css';

export function SignInPage({ onSignedIn }: { onSignedIn: () => void }) {
  const { t } = useTranslation();
  const { data } = useQuery(sessionQuery);
  return (
    <>
      <ServerBanner />
      <main className={classes['page']}>
        <div className={classes['card']}>
          <Brand />
          <h1>{t('signIn.title')}</h1>
          <p className="cv-soft">{t('signIn.hint')}</p>
          {data?.process_pods && <p className="cv-soft">{t('signIn.processPods')}</p>}
          <SignInForm onSignedIn={onSignedIn} />
        </div>
      </main>
    </>
  );
}
