/** A word of the glossary: what it means is one hover, or one description, away; the same on every page. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

export type Word = 'running' | 'charged' | 'starting' | 'held' | 'free';

export function Term({ word, children }: { word: Word; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <dfn className="cv-term" title={t(`glossary.${word}`)}>
      {children}
    </dfn>
  );
}
