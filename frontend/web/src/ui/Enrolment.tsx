/** What an authenticator app is set up with, and the codes for the day it is lost. */
import { Alert } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { CopyText } from './CopyAs.tsx';

export function Enrolment({ secret, image }: { secret: string; image: string }) {
  const { t } = useTranslation();
  return (
    <div>
      <p className="cv-soft">{t('secondFactor.scan')}</p>
      <img src={image} alt={t('secondFactor.image')} width={180} height={180} />
      <p>
        <code className="cv-mono">{secret}</code> <CopyText text={secret} />
      </p>
    </div>
  );
}

export function RecoveryCodes({ codes }: { codes: string[] }) {
  const { t } = useTranslation();
  return (
    <Alert color="green" role="status">
      <p>
        <strong>{t('secondFactor.recoveryTitle')}</strong>
        <br />
        {t('secondFactor.recoveryBody')} <CopyText text={codes.join('\n')} />
      </p>
      {codes.map((code) => (
        <div key={code}>
          <code className="cv-mono">{code}</code>
        </div>
      ))}
    </Alert>
  );
}
