/** Rows of accounting added up. Pure. */
import type { Accounting } from '../api/types.ts';

export interface Total {
  gpu_hours: number;
  useful: number;
  cost: number;
  unpriced: number;
  attempts: number;
  /** Hours of jobs, without those in which a user had suspended them. */
  waited: number;
}

export function waitedOf({ waited_hours }: Accounting): number {
  return Object.entries(waited_hours).reduce((sum, [owner, hours]) => (owner === 'suspended' ? sum : sum + hours), 0);
}

/** Of months: an attempt over the turn of one counts in both. */
export function totalOf(rows: Accounting[]): Total {
  const sum = (amount: (row: Accounting) => number) => rows.reduce((all, row) => all + amount(row), 0);
  return {
    gpu_hours: sum((row) => row.gpu_hours),
    useful: sum((row) => row.useful_gpu_hours),
    cost: sum((row) => row.cost),
    unpriced: sum((row) => row.unpriced_gpu_hours),
    attempts: sum((row) => row.attempts),
    waited: sum(waitedOf),
  };
}
