/** How each state of a job looks, and which actions it admits. Pure. */
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
  ShieldCheck,
  Undo2,
} from 'lucide-react';

import type { Job, JobState } from '../api/types.ts';
import type { Tone } from '../ui/tones.ts';

export const STATES: Record<JobState, { tone: Tone; icon: LucideIcon }> = {
  Queued: { tone: 'neutral', icon: Clock },
  Admitted: { tone: 'info', icon: ShieldCheck },
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

export type Action = 'suspend' | 'resume' | 'delete';

/** Why an action cannot be taken, as a key of `jobs.whyNot`; null when it can. */
export type Obstacle = 'notAllowed' | 'finished' | 'suspended' | 'notSuspended';

export function isFinished({ state }: Pick<Job, 'state'>): boolean {
  return state === 'Succeeded' || state === 'Failed';
}

export function obstacleTo(action: Action, job: Pick<Job, 'state' | 'suspended'>, allowed: boolean): Obstacle | null {
  if (!allowed) return 'notAllowed';
  if (action === 'delete') return null;
  if (isFinished(job)) return 'finished';
  if (action === 'suspend') return job.suspended ? 'suspended' : null;
  return job.suspended ? null : 'notSuspended';
}
