/** What only the server has words for: read at once in English, one click away in other languages. */
import { useTranslation } from 'react-i18next';

import { polished, refusalOf } from './serverText.ts';

export function ServerText({ text }: { text: string }) {
  const { t, i18n } = useTranslation();
  if (text === '') return null;
  if (i18n.language === 'en') return <>{polished(text)}</>;
  return (
    <details className="cv-raw">
      <summary>{t('common.details')}</summary>
      <span lang="en">{text}</span>
    </details>
  );
}

/** A refusal: its kind in the reader's language, the server's own words beside it. */
export function ErrorText({ error }: { error: Error }) {
  const { t, i18n } = useTranslation();
  return (
    <>
      {i18n.language !== 'en' && t(`refused.${refusalOf(error)}`)} <ServerText text={error.message} />
    </>
  );
}
