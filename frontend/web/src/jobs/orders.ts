/** What may be ordered for jobs: one body for one and for many, and what stands in the way of a single job. Pure. */
import type { components } from '../api/schema.d.ts';
import type { Job, JobState } from '../api/types.ts';
import type { Action } from './states.ts';

export type OrderName = components['schemas']['JobActionEnum'];
export type Steering = Exclude<OrderName, Action>;

/** Those that ask for a value, or preview what becomes of each job. */
export const STEERING: readonly Steering[] = ['priority', 'move', 'scale', 'preempt', 'resubmit'];
export const ORDERS: readonly OrderName[] = ['suspend', 'resume', ...STEERING, 'delete'];

/** The name under which `me` says whether it is allowed at all. */
export const RIGHTS: Record<OrderName, string> = {
  suspend: 'suspend',
  resume: 'resume',
  delete: 'delete',
  priority: 'apply',
  move: 'move',
  scale: 'apply',
  preempt: 'suspend',
  resubmit: 'apply',
};

export interface OrderValues {
  priority: string;
  queue: string;
  role: string;
  replicas: string;
}

export const NO_VALUES: OrderValues = { priority: '', queue: '', role: '', replicas: '' };

const WHOLE = /^-?\d{1,10}$/;

/** What is sent for it beside the jobs; null while a value is missing. */
export function valuesOf(action: OrderName, { priority, queue, role, replicas }: OrderValues): Record<string, string | number> | null {
  if (action === 'priority') return WHOLE.test(priority.trim()) ? { priority: Number(priority) } : null;
  if (action === 'move') return queue ? { queue } : null;
  if (action !== 'scale') return {};
  if (!/^\d{1,9}$/.test(replicas.trim())) return null;
  return { replicas: Number(replicas), ...(role ? { role } : {}) };
}

const ENDED: readonly JobState[] = ['Succeeded', 'Failed'];
const PLACED: readonly JobState[] = ['Placed', 'Dispatched', 'Running', 'Backoff'];
const WAITING: readonly JobState[] = ['Queued', 'Moving'];

/** Whether its state, or its kind, lets it be done now; the server decides again. */
export function obstacleOf(action: Steering, { state, size, deleting_at }: Pick<Job, 'state' | 'size' | 'deleting_at'>): '' | 'state' | 'size' {
  const possible = {
    priority: !ENDED.includes(state),
    move: WAITING.includes(state),
    scale: state === 'Running',
    preempt: PLACED.includes(state),
    resubmit: ENDED.includes(state),
  }[action];
  if (deleting_at || !possible) return 'state';
  return action === 'scale' && !size ? 'size' : '';
}
