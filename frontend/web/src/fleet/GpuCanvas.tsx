/** One cluster's GPUs on a canvas: ten thousand cells are drawn at once, where as many elements would be slow. */
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type PointerEvent, useEffect, useMemo, useRef } from 'react';

import type { ColourBy, MapNode } from './cells.ts';
import classes from './GpuMap.module.css';
import { type Block, CELL, type Hit, hitAt, layoutOf, placeOf } from './mapLayout.ts';

interface Props {
  /** What is read instead of the picture. */
  label: string;
  nodes: MapNode[];
  by: ColourBy;
  hues: ReadonlyMap<string, number>;
  onPoint: (hit: Hit | null) => void;
  onOpen: (hit: Hit) => void;
}

export function GpuCanvas({ label, nodes, by, hues, onPoint, onOpen }: Props) {
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme();
  const { blocks, height } = useMemo(() => layoutOf(nodes, by, width), [nodes, by, width]);
  useEffect(() => {
    if (canvas.current && width > 0) paint(canvas.current, blocks, hues, width, height);
  }, [blocks, hues, width, height, scheme]);
  const under = ({ nativeEvent: { offsetX, offsetY } }: PointerEvent) => hitAt(blocks, offsetX, offsetY);
  const open = (event: PointerEvent) => {
    const hit = under(event);
    if (hit) onOpen(hit);
  };
  return (
    <div ref={box}>
      <p className="cv-hidden">{label}</p>
      <canvas
        ref={canvas}
        aria-hidden
        className={classes['canvas']}
        onPointerMove={(event) => onPoint(under(event))}
        onPointerLeave={() => onPoint(null)}
        onPointerUp={open}
      />
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, blocks: Block[], hues: ReadonlyMap<string, number>, width: number, height: number): void {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${String(height)}px`;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(scale, scale);
  const tokens = getComputedStyle(document.documentElement);
  const colours = new Map<string, string>();
  const token = (name: string) => {
    const colour = colours.get(name) ?? tokens.getPropertyValue(`--cv-${name}`).trim();
    colours.set(name, colour);
    return colour;
  };
  for (const block of blocks) {
    block.cells.forEach(({ look, key }, i) => {
      const [x, y] = placeOf(block, i);
      if (look === 'free' || look === 'off' || look === 'unknown') {
        context.strokeStyle = token(key === 'fragment' ? 'held' : 'line-strong');
        context.strokeRect(x + 0.5, y + 0.5, CELL - 1, CELL - 1);
        if (look !== 'free') stroke(context, token('line-strong'), x, y);
        return;
      }
      const hue = hues.get(key);
      context.fillStyle = token(look === 'use' ? `use-${key}` : hue !== undefined ? `map-${String(hue)}` : look === 'stranger' ? 'neutral' : 'used');
      context.fillRect(x, y, CELL, CELL);
      if (look === 'held') stroke(context, token('surface'), x, y);
    });
  }
}

/** Hatched: colour alone tells no two states apart. */
function stroke(context: CanvasRenderingContext2D, colour: string, x: number, y: number): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x + 1, y + CELL - 1);
  context.lineTo(x + CELL - 1, y + 1);
  context.stroke();
  context.lineWidth = 1;
}
