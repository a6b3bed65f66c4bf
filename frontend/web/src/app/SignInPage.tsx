/** The first page of somebody who is not signed in. */
import { useTranslation } from 'react-i18next';

import { Brand } from './Brand.tsx';
import { ServerBanner } from './ServerBanner.tsx';
import { SignInForm } from './SignInForm.tsx';
import classes from './SignInPage.module.css';

export function SignInPage({ onSignedIn }: { onSignedIn: () => void }) {
  const { t } = useTranslation();
  return (
    <>
      <ServerBanner />
      <main className={classes['page']}>
        <div className={classes['card']}>
          <Brand />
          <h1>{t('signIn.title')}</h1>
          <p className="cv-soft">{t('signIn.hint')}</p>
          <SignInForm onSignedIn={onSignedIn} />
        </div>
      </main>
    </>
  );
}
