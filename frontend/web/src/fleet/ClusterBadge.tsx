/** How a cluster is doing. */
import { CircleCheck, CircleHelp, CircleX, type LucideIcon } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Cluster, ClusterState } from '../api/types.ts';
import { StateBadge } from '../ui/StateBadge.tsx';
import type { Tone } from '../ui/tones.ts';

const LOOKS: Record<ClusterState, { tone: Tone; icon: LucideIcon }> = {
  Ready: { tone: 'good', icon: CircleCheck },
  NotReady: { tone: 'bad', icon: CircleX },
  Unknown: { tone: 'warn', icon: CircleHelp },
};

export function ClusterBadge({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  return <StateBadge {...LOOKS[cluster.state]} label={t(`clusterState.${cluster.state}`)} />;
}
