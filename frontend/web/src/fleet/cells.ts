/** A node's GPUs as cells: which pod is on each, which are taken by strangers, which are free. And what still fits. Pure. */
import type { NodeGpus, PodOnNode } from '../api/types.ts';

export type ColourBy = 'job' | 'queue' | 'namespace' | 'fragments';

export interface Cell {
  look: 'pod' | 'stranger' | 'free' | 'off';
  pod: PodOnNode | null;
  /** Cells of one key have one colour; empty for cells without an owner. */
  key: string;
}

export const HUES = 10;

export function cellsOf(node: NodeGpus, by: ColourBy): Cell[] {
  if (!node.ready) return Array.from({ length: node.gpus }, () => ({ look: 'off', pod: null, key: '' }));
  const free = Math.max(node.gpus - node.requested, 0);
  const ours: Cell[] = node.pods.flatMap((pod) =>
    Array.from({ length: pod.gpus }, (): Cell => ({ look: 'pod', pod, key: keyOf(pod, by) })),
  );
  const cells = ours.slice(0, node.gpus);
  while (cells.length < node.gpus - free) cells.push({ look: 'stranger', pod: null, key: '' });
  // What is left of a node that is partly taken is a fragment: too little for a pod that asks for the whole node.
  const fragment = by === 'fragments' && free > 0 && free < node.gpus ? 'fragment' : '';
  while (cells.length < node.gpus) cells.push({ look: 'free', pod: null, key: fragment });
  return cells;
}

function keyOf(pod: PodOnNode, by: ColourBy): string {
  if (by === 'fragments') return '';
  return { job: pod.id, queue: pod.queue, namespace: pod.namespace }[by];
}

/** The same key has the same colour on every page and every day. */
export function hueOf(key: string): number {
  let hash = 0;
  for (const letter of key) hash = (hash * 31 + letter.charCodeAt(0)) % 1_000_003;
  return hash % HUES;
}

export interface Fit {
  /** GPUs of one pod. */
  size: number;
  /** How many such pods there is room for now, by GPUs alone. */
  pods: number;
}

/** The largest gang of each usual size of pod that would find room now. */
export function largestGangs(nodes: NodeGpus[]): Fit[] {
  const frees = nodes.filter(({ ready, unschedulable }) => ready && !unschedulable).map((node) => Math.max(node.gpus - node.requested, 0));
  const widest = Math.max(0, ...nodes.map(({ gpus }) => gpus));
  return [1, 2, 4, 8, 16]
    .filter((size) => size <= widest)
    .map((size) => ({ size, pods: frees.reduce((all, free) => all + Math.floor(free / size), 0) }));
}

export function byDomain(nodes: NodeGpus[]): { domain: string; nodes: NodeGpus[] }[] {
  return [...new Set(nodes.map(({ domain }) => domain))].map((domain) => ({
    domain,
    nodes: nodes.filter((node) => node.domain === domain),
  }));
}
