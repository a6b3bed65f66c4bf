/** A word of the glossary: what it means is one hover, or one description, away; the same on every page. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import type en from '../locales/en.json';

export type Word = keyof (typeof en)['glossary'];

export function Term({ word, children }: { word: Word; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <dfn className="cv-term" title={t(`glossary.${word}`)}>
      {children}
    </dfn>
  );
}
