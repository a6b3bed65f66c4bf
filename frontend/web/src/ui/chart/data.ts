/** Values over time as a chart draws, reads out and tabulates them. Pure. */

/** Null: not known. */
export type Value = number | null;

export const LOOKS = ['used', 'held', 'free', 'away', 'borrowed', 'lent', 'min', 'max'] as const;

/** One for each of several things of a kind, in their order; the last is of all others. */
export const CATEGORIES = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7'] as const;

/** How a line or an area is drawn; its colours are in tokens.css. */
export type Look = (typeof LOOKS)[number] | (typeof CATEGORIES)[number];

export interface Line {
  id: string;
  label: string;
  look: Look;
  values: Value[];
  /** An area that stands on the stacked ones before it; otherwise a line from zero. */
  stacked?: boolean;
}

/** Something that happened at a moment, in seconds since 1970. */
export interface Mark {
  at: number;
  text: string;
  tone: 'good' | 'bad';
}

export type Layers = { line: Line; values: Value[] }[];

/** Line by line, a value for each time: of the stacked ones the sum up to it. The highest comes first, to be painted over. */
export function layersOf(lines: Line[]): Layers {
  const stacked = lines.filter((line) => line.stacked);
  let below: Value[] = [];
  const areas = stacked.map((line) => {
    below = line.values.map((value, i) => sum(value, below[i]));
    return { line, values: below };
  });
  const plain = lines.filter((line) => !line.stacked).map((line) => ({ line, values: line.values }));
  return [...areas.reverse(), ...plain];
}

function sum(value: Value, below: Value | undefined): Value {
  if (value === null || below === null) return null;
  return value + (below ?? 0);
}

/** Where something is known last; the last place of all where nothing is. */
export function latest(lines: Line[], count: number): number {
  for (let i = count - 1; i >= 0; i -= 1) if (lines.some((line) => known(line, i) !== null)) return i;
  return Math.max(0, count - 1);
}

export function known(line: Line, index: number): Value {
  return line.values[index] ?? null;
}

export function isEmpty(lines: Line[]): boolean {
  return lines.every((line) => line.values.every((value) => value === null));
}

/** The places where a value differs from the one before, or something happened. */
export function changes(lines: Line[], times: number[], marks: Mark[], step: number): number[] {
  return times.flatMap((at, i) => {
    const changed = lines.some((line) => known(line, i) !== (i > 0 ? known(line, i - 1) : null));
    return changed || marksIn(marks, at, step).length > 0 ? [i] : [];
  });
}

export function marksIn(marks: Mark[], at: number, step: number): Mark[] {
  return marks.filter((mark) => mark.at >= at && mark.at < at + step);
}

/** Where a key leads from a place among so many; undefined: nowhere. */
export function target(key: string, from: number, count: number): number | undefined {
  const far = Math.max(1, Math.round(count / 10));
  const goal = {
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    ArrowDown: from - 1,
    ArrowUp: from + 1,
    PageUp: from + far,
    PageDown: from - far,
    Home: 0,
    End: count - 1,
  }[key];
  return goal === undefined ? undefined : Math.min(count - 1, Math.max(0, goal));
}

/** Where a value has none before and behind it: a line does not show that it is there. */
export function alone(values: ArrayLike<number | null | undefined>): number[] {
  const isThere = (at: number) => values[at] !== null && values[at] !== undefined;
  return Array.from(values, (_, at) => at).filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
}
