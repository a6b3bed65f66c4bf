/** What exporters measured of nodes, and what the server calls idle, put beside what is allocated on them. Pure. */
import type { MeasuredGpu, NodeGpus, NodeUses } from '../api/types.ts';
import type { MapNode } from './cells.ts';

/** Nothing is known of their use before it is known what is idle: a free GPU would look like one at work. */
export function withUse(nodes: NodeGpus[], uses: NodeUses['nodes'] | undefined, idlePercent: number | undefined): MapNode[] {
  if (!uses || idlePercent === undefined) return nodes;
  const measured = new Map(uses.map(({ node, gpus }) => [node, gpus]));
  return nodes.map((node) => ({ ...node, measured: measured.get(node.name), idlePercent }));
}

/** Rounded; a dash for what is not known. */
export function numbersOf({ utilization, power, temperature }: MeasuredGpu): Record<'percent' | 'watts' | 'degrees', string> {
  const text = (value: number | null) => (value === null ? '–' : String(Math.round(value)));
  return { percent: text(utilization), watts: text(power), degrees: text(temperature) };
}
