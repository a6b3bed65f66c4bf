/** What stands in the way on one cluster, in the reader's language; the full sentence with its numbers one click away. */
import { useTranslation } from 'react-i18next';

import { type Looked, verdictWords } from './words.ts';

export function VerdictText({ verdict }: { verdict: Looked & { message: string } }) {
  const { t, i18n } = useTranslation();
  return (
    <div>
      {verdictWords(verdict, { t, language: i18n.language })}
      {verdict.code !== 'Fits' && (
        <details className="cv-raw">
          <summary>{t('common.details')}</summary>
          <span lang="en">{verdict.message}</span>
        </details>
      )}
    </div>
  );
}
