/** How each state of a job looks, and what may be asked of a job. */
import {
  ArrowRightLeft,
  CircleCheck,
  CirclePause,
  CirclePlay,
  CircleX,
  Clock,
  Hourglass,
  type LucideIcon,
  MapPin,
  Send,
  Undo2,
} from 'lucide-react';

import type { JobState } from '../api/types.ts';
import type { Tone } from '../ui/tones.ts';

export const STATES: Record<JobState, { tone: Tone; icon: LucideIcon }> = {
  Queued: { tone: 'neutral', icon: Clock },
  Placed: { tone: 'info', icon: MapPin },
  Dispatched: { tone: 'info', icon: Send },
  Running: { tone: 'good', icon: CirclePlay },
  Succeeded: { tone: 'neutral', icon: CircleCheck },
  Failed: { tone: 'bad', icon: CircleX },
  Suspended: { tone: 'warn', icon: CirclePause },
  Reclaiming: { tone: 'move', icon: Undo2 },
  Moving: { tone: 'move', icon: ArrowRightLeft },
  Backoff: { tone: 'warn', icon: Hourglass },
};

export const STATE_NAMES = Object.keys(STATES) as JobState[];

/** Its switch, and its end: what one question answers. */
export type Action = 'suspend' | 'resume' | 'delete';
