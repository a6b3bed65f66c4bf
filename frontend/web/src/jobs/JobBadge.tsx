/** Where a job stands, in one word. */
import { useTranslation } from 'react-i18next';

import type { JobState } from '../api/types.ts';
import { StateBadge } from '../ui/StateBadge.tsx';
import { STATES } from './states.ts';

export function JobBadge({ state }: { state: JobState }) {
  const { t } = useTranslation();
  return <StateBadge {...STATES[state]} label={t(`jobState.${state}`)} />;
}
