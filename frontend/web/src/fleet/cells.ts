/** A node's GPUs as cells: which pod is on each, which are held, taken by strangers or free; their colours; what still fits. Pure. */
import type { HoldOnNode, MeasuredGpu, NodeGpus, PodOnNode } from '../api/types.ts';

export type ColourBy = 'job' | 'queue' | 'namespace' | 'fragments' | 'use';

export type Occupant = HoldOnNode & Partial<Pick<PodOnNode, 'role' | 'index'>>;

export interface Cell {
  look: 'pod' | 'held' | 'stranger' | 'free' | 'off' | 'use' | 'unknown';
  pod: Occupant | null;
  measured?: MeasuredGpu;
  /** Cells of one key have one colour; empty for cells without an owner. */
  key: string;
}

/** Colours that are told apart; owners beyond them share one more. */
export const HUES = 10;
export const REST = HUES;

/** A node with what its exporter measured last, without which nothing is known of its use, and the percent up to which a GPU is idle. */
export type MapNode = NodeGpus & { measured?: MeasuredGpu[] | undefined; idlePercent?: number | undefined };

/** How much an allocated GPU computes, from the least. */
export const LEVELS = ['idle', 'low', 'middle', 'high'] as const;

export function cellsOf(node: MapNode, by: ColourBy): Cell[] {
  if (node.ready && by === 'use') return measuredCells(node);
  if (!node.ready) return Array.from({ length: node.gpus }, () => ({ look: 'off', pod: null, key: '' }));
  const free = freeOf(node);
  const ours = node.pods.flatMap((pod) => cellsOfOne(pod, 'pod', by));
  const held = node.holds.flatMap((hold) => cellsOfOne(hold, 'held', by));
  const cells = ours.slice(0, node.gpus);
  while (cells.length < node.gpus - free - held.length) cells.push({ look: 'stranger', pod: null, key: '' });
  cells.push(...held.slice(0, node.gpus - cells.length));
  // What is left of a node that is partly taken is a fragment: too little for a pod that asks for the whole node.
  const fragment = by === 'fragments' && free > 0 && free < node.gpus ? 'fragment' : '';
  while (cells.length < node.gpus) cells.push({ look: 'free', pod: null, key: fragment });
  return cells;
}

/** GPU by GPU, in the order of their numbers. As many may be free as the node has left: exporters do not always say who has a GPU. */
function measuredCells(node: MapNode): Cell[] {
  const units = unitsOf(node);
  const most = node.idlePercent ?? 0;
  const idle = units.filter((gpu) => gpu?.utilization != null && gpu.id === '' && gpu.idle_since === null && gpu.utilization <= most);
  const free = new Set(idle.sort((a, b) => (a?.utilization ?? 0) - (b?.utilization ?? 0)).slice(0, freeOf(node)));
  return units.map((gpu) => {
    if (gpu?.utilization == null) return { look: 'unknown', pod: null, key: '' };
    const pod = gpu.id === '' ? null : { id: gpu.id, kind: '', namespace: gpu.namespace, name: gpu.name, queue: '', gpus: 1 };
    const isFree = free.has(gpu);
    return { look: isFree ? 'free' : 'use', pod, key: isFree ? '' : levelOf(gpu.utilization, gpu.idle_since), measured: gpu };
  });
}

/** What was measured of each GPU by its number; of a node with divided GPUs, of each instance instead, in their order. */
function unitsOf({ gpus, measured = [] }: MapNode): (MeasuredGpu | undefined)[] {
  const divided = new Set(measured.filter(({ gpu }) => gpu.includes('/')).map(({ gpu }) => gpu.split('/')[0]));
  const instances = measured.filter(({ gpu }) => !divided.has(gpu));
  const byNumber = new Map(measured.map((each) => [each.gpu, each]));
  return Array.from({ length: gpus }, (_, i) => (divided.size > 0 ? instances[i] : byNumber.get(String(i))));
}

function levelOf(percent: number, idleSince: string | null): (typeof LEVELS)[number] {
  if (idleSince !== null) return 'idle';
  if (percent < 40) return 'low';
  return percent <= 75 ? 'middle' : 'high';
}

function cellsOfOne(pod: Occupant, look: 'pod' | 'held', by: ColourBy): Cell[] {
  // Of a namespace that the reader may not see it has no name.
  const cell: Cell = pod.id !== '' ? { look, pod, key: keyOf(pod, by) } : { look: look === 'pod' ? 'stranger' : look, pod: null, key: '' };
  return Array.from({ length: pod.gpus }, () => cell);
}

/** Neither asked for by a pod nor held for one that comes. */
export function freeOf({ ready, gpus, requested, holds }: NodeGpus): number {
  return ready ? Math.max(gpus - requested - holds.reduce((all, hold) => all + hold.gpus, 0), 0) : 0;
}

function keyOf(pod: Occupant, by: ColourBy): string {
  if (by === 'fragments' || by === 'use') return '';
  return { job: pod.id, queue: pod.queue || '–', namespace: pod.namespace }[by];
}

export interface LegendEntry {
  key: string;
  label: string;
  gpus: number;
  hue: number;
}

/** Owners of what is on screen, the largest first, no two of the first ten in one colour; an owner keeps its colour if it can. */
export function legendOf(cells: Cell[], by: ColourBy): LegendEntry[] {
  const owners = new Map<string, LegendEntry>();
  for (const { key, pod } of cells) {
    if (key === '' || !pod || by === 'use') continue;
    const entry = owners.get(key) ?? { key, label: by === 'job' ? `${pod.namespace}/${pod.name}` : key, gpus: 0, hue: REST };
    entry.gpus += 1;
    owners.set(key, entry);
  }
  const entries = [...owners.values()].sort((a, b) => b.gpus - a.gpus || a.label.localeCompare(b.label));
  const taken = new Set<number>();
  for (const entry of entries.slice(0, HUES)) {
    let hue = hueOf(entry.key);
    while (taken.has(hue)) hue = (hue + 1) % HUES;
    taken.add(hue);
    entry.hue = hue;
  }
  return entries;
}

function hueOf(key: string): number {
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
  const frees = nodes.filter(({ unschedulable }) => !unschedulable).map(freeOf);
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
