/** Where an incident stands: its cause lasts, jobs still wait, or all is over. */
import { CircleCheck, RefreshCw, TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Incident } from '../api/types.ts';
import { StateBadge } from '../ui/StateBadge.tsx';

const LOOKS = {
  Open: { tone: 'bad', icon: TriangleAlert },
  Recovering: { tone: 'warn', icon: RefreshCw },
  Over: { tone: 'good', icon: CircleCheck },
} as const;

export function StageBadge({ stage }: Pick<Incident, 'stage'>) {
  const { t } = useTranslation('deferred');
  return <StateBadge {...LOOKS[stage]} label={t(`incident.stage.${stage}`)} meaning={t(`incident.stageMeaning.${stage}`)} />;
}
