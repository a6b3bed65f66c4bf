/** Where a job stands, in one word. */
import { useTranslation } from 'react-i18next';

import type { JobState } from '../api/types.ts';
import { StateBadge } from '../ui/StateBadge.tsx';
import type { Word } from '../ui/Term.tsx';
import { STATES } from './states.ts';

/** States that the glossary defines. */
const WORDS: Partial<Record<JobState, Word>> = { Placed: 'placed', Dispatched: 'dispatched', Running: 'running' };

export function JobBadge({ state }: { state: JobState }) {
  const { t } = useTranslation();
  const word = WORDS[state];
  return <StateBadge {...STATES[state]} label={t(`jobState.${state}`)} {...(word ? { meaning: t(`glossary.${word}`) } : {})} />;
}
