/** A mark on the bar that can be taken hold of: by pointer, or by the arrow keys as any slider. */
import type { KeyboardEvent, PointerEvent } from 'react';

import type { Bound } from './model.ts';
import classes from './QuotaBar.module.css';

interface Props {
  bound: Bound;
  label: string;
  /** Whole units; null while there is no such bound, which puts the handle at the end. */
  value: number | null;
  text: string;
  scale: number;
  step: number;
  wrong: boolean;
  disabled: boolean;
  onChange: (units: number) => void;
}

const LEAPS: Record<string, number> = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

export function QuotaHandle({ bound, label, value, text, scale, step, wrong, disabled, onChange }: Props) {
  const at = value ?? scale;
  const settle = (units: number) => onChange(Math.min(scale, Math.max(0, units)));

  const onKeyDown = (event: KeyboardEvent) => {
    const leap = LEAPS[event.key];
    const goal = event.key === 'Home' ? 0 : event.key === 'End' ? scale : leap === undefined ? null : at + leap * step;
    if (goal === null || event.altKey || disabled) return;
    event.preventDefault();
    event.stopPropagation();
    settle(goal);
  };

  const onPointerMove = ({ currentTarget: handle, pointerId, clientX }: PointerEvent<HTMLElement>) => {
    const track = handle.parentElement?.getBoundingClientRect();
    if (!handle.hasPointerCapture(pointerId) || !track) return;
    settle(Math.round((((clientX - track.left) / track.width) * scale) / step) * step);
  };

  return (
    <span
      className={classes['handle']}
      data-bound={bound}
      data-wrong={wrong}
      style={{ left: `${share(at, scale)}%` }}
      role="slider"
      tabIndex={disabled ? -1 : 0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={scale}
      aria-valuenow={at}
      aria-valuetext={text}
      aria-disabled={disabled}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        if (disabled) return;
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        event.currentTarget.focus();
      }}
      onPointerMove={onPointerMove}
    />
  );
}

export function share(value: number, scale: number): number {
  return scale > 0 ? Math.min(100, (value / scale) * 100) : 0;
}
