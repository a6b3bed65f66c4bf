/** GPU-hours that queues lent each other, as a table of lenders and borrowers below one node. Pure. */
import type { Lending } from '../api/types.ts';

type Flow = Lending['results'][number];

export interface Matrix {
  lenders: string[];
  borrowers: string[];
  /** By lender and borrower. */
  of: (lender: string, borrower: string) => number;
  lent: (lender: string) => number;
  borrowed: (borrower: string) => number;
  most: number;
  total: number;
}

export function parentsOf(flows: Flow[]): string[] {
  return [...new Set(flows.map(({ node }) => node))].sort((left, right) => left.split('/').length - right.split('/').length || left.localeCompare(right));
}

/** The largest first. */
export function matrixOf(flows: Flow[], parent: string): Matrix {
  const own = flows.filter((flow) => flow.node === parent);
  const sum = (flow: (each: Flow) => boolean) => own.filter(flow).reduce((all, { gpu_hours }) => all + gpu_hours, 0);
  const lent = (name: string) => sum(({ lender }) => lender === name);
  const borrowed = (name: string) => sum(({ borrower }) => borrower === name);
  const names = (all: string[], amount: (name: string) => number) => [...new Set(all)].sort((left, right) => amount(right) - amount(left));
  return {
    lenders: names(own.map(({ lender }) => lender), lent),
    borrowers: names(own.map(({ borrower }) => borrower), borrowed),
    of: (from, to) => sum(({ lender, borrower }) => lender === from && borrower === to),
    lent,
    borrowed,
    most: Math.max(0, ...own.map(({ gpu_hours }) => gpu_hours)),
    total: sum(() => true),
  };
}
