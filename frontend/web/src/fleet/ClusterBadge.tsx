/** How a cluster is doing, and whether it takes jobs. */
import { Ban, Bot, CircleCheck, CircleHelp, CircleX, type LucideIcon } from 'lucide-react';
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

/** Played on this machine: nothing of it is real. */
export function SimulatedBadge({ cluster: { simulated } }: { cluster: Cluster }) {
  const { t } = useTranslation();
  return simulated && <StateBadge tone="neutral" icon={Bot} label={t('fleet.simulated')} />;
}

/** A drained cluster is closed whether or not it is cordoned, too. */
export function ClosedBadge({ cluster: { cordoned, drained } }: { cluster: Cluster }) {
  const { t } = useTranslation();
  if (!cordoned && !drained) return null;
  return <StateBadge tone="warn" icon={Ban} label={t(drained ? 'fleet.drained' : 'fleet.cordoned')} />;
}
