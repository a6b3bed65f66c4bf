/** Where each node's GPUs stand on a canvas of some width, and which of them is under a point. Pure. */
import { type Cell, cellsOf, type ColourBy, type MapNode } from './cells.ts';

export const CELL = 11;
const STEP = CELL + 2;
const NODE_GAP = 8;
const IN_ROW = 8;

export interface Block {
  node: MapNode;
  cells: Cell[];
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Nodes beside each other, in their order, as many in a line as there is room for. */
export function layoutOf(nodes: MapNode[], by: ColourBy, width: number): { blocks: Block[]; height: number } {
  const blocks: Block[] = [];
  let [x, y, line] = [0, 0, 0];
  for (const node of nodes) {
    const size = { width: Math.min(node.gpus, IN_ROW) * STEP, height: Math.ceil(node.gpus / IN_ROW) * STEP };
    if (x > 0 && x + size.width > width) [x, y, line] = [0, y + line + NODE_GAP, 0];
    blocks.push({ node, cells: cellsOf(node, by), x, y, ...size });
    x += size.width + NODE_GAP;
    line = Math.max(line, size.height);
  }
  return { blocks, height: y + line };
}

export function placeOf(block: Block, index: number): [number, number] {
  return [block.x + (index % IN_ROW) * STEP, block.y + Math.floor(index / IN_ROW) * STEP];
}

export interface Hit {
  block: Block;
  cell: Cell;
}

export function hitAt(blocks: Block[], x: number, y: number): Hit | null {
  const block = blocks.find((each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height);
  const cell = block?.cells[Math.floor((y - block.y) / STEP) * IN_ROW + Math.floor((x - block.x) / STEP)];
  return block && cell ? { block, cell } : null;
}
