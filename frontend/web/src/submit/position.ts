/**
 * Where the cursor is in a file of manifests: the path of keys over it, from indentation alone, for the text is being typed
 * and seldom whole. Pure; knows nothing of schemas.
 */
import { type Line, readLines } from './lines.ts';

/** The step from a list to its entries, as the server spells it. */
export const ENTRY = '[]';

export interface Position {
  apiVersion: string;
  kind: string;
  /** Of the mapping a key belongs to, or of the value itself. */
  path: string[];
  /** What may stand here; behind a dash both may. */
  takes: 'key' | 'value' | 'entry';
  /** Where the word that is being typed begins. */
  from: number;
  /** The keys the mapping has besides. */
  present: string[];
}

const SEPARATOR = /^(?:---|\.\.\.)(?:\s|$)/;
/** A key or a plain value as far as it is typed. */
const WORD = /^[\w./-]*$/;

/** Null where nothing can be offered: in comments, texts, brackets and quotes, and between documents. */
export function positionAt(text: string, offset: number): Position | null {
  const { before, typed, after } = documentAt(text, offset);
  const lines = readLines([...before, typed, ...after]);
  const here = lines[before.length];
  if (!here || here.inside || !mayStand(here, typed)) return null;
  const above = lines.slice(0, before.length);
  const below = lines.slice(before.length + 1);
  const stack = stackOf(above);
  here.dashes.forEach((column) => enter(stack, { column, step: ENTRY, dash: true }));
  const ended = leave(stack, here.column).at(0);
  const path = stack.map(({ step }) => step);
  const shared = { ...headerOf([...above, ...below]), from: offset - here.value.length };
  if (here.key !== null) return { ...shared, path: [...path, here.key], takes: 'value', present: [] };
  if (ended && ended.column !== here.column) return null;
  return { ...shared, path, takes: here.dashes.length > 0 ? 'entry' : 'key', present: presentKeys(above, below, here) };
}

/** Whether what is typed of the line ends with a word, or with a blank before one. */
function mayStand(here: Line, typed: string): boolean {
  if (SEPARATOR.test(typed) || /^\s*\t/.test(typed) || !WORD.test(here.value)) return false;
  if (here.empty) return typed.trim() === '';
  return here.value === '' ? /\s$/.test(typed) : /\S$/.test(typed);
}

interface Step {
  column: number;
  step: string;
  dash: boolean;
}

/** What is over the end of these lines, outermost first. */
function stackOf(lines: readonly Line[]): Step[] {
  const stack: Step[] = [];
  for (const line of lines.filter(({ empty, inside }) => !empty && !inside)) {
    line.dashes.forEach((column) => enter(stack, { column, step: ENTRY, dash: true }));
    if (line.key !== null) enter(stack, { column: line.column, step: line.key, dash: false });
  }
  return stack;
}

function enter(stack: Step[], step: Step): void {
  leave(stack, step.column, step.dash);
  stack.push(step);
}

/** Drops what ends where something begins in this column, and returns it: a list may stand right below its key. */
function leave(stack: Step[], column: number, toDash = false): Step[] {
  const first = stack.findIndex((each) => each.column > column || (each.column === column && (each.dash || !toDash)));
  return first < 0 ? [] : stack.splice(first);
}

/** The lines of the document the cursor is in, its own up to the cursor. */
function documentAt(text: string, offset: number) {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const end = text.indexOf('\n', offset) < 0 ? text.length : text.indexOf('\n', offset);
  const before = text.slice(0, start).split('\n').slice(0, -1);
  const after = end < text.length ? text.slice(end + 1).split('\n') : [];
  const next = after.findIndex((line) => SEPARATOR.test(line));
  return {
    before: before.slice(before.findLastIndex((line) => SEPARATOR.test(line)) + 1),
    typed: text.slice(start, offset),
    after: next < 0 ? after : after.slice(0, next),
  };
}

function headerOf(lines: readonly Line[]): Pick<Position, 'apiVersion' | 'kind'> {
  const text = (name: string) => {
    const value = lines.find((line) => line.column === 0 && line.key === name && !line.inside)?.value ?? '';
    return value.replace(/\s#.*$/, '').replace(/^(["'])(.*)\1$/, '$2');
  };
  return { apiVersion: text('apiVersion'), kind: text('kind') };
}

/** Up and down from here, as far as the same mapping goes. */
function presentKeys(above: readonly Line[], below: readonly Line[], here: Line): string[] {
  const own = here.dashes.length > 0 ? [] : siblings([...above].reverse(), here.column, true);
  return [...own, ...siblings(below, here.column, false)];
}

function siblings(lines: readonly Line[], column: number, upwards: boolean): string[] {
  const found: string[] = [];
  for (const line of lines.filter(({ empty, inside }) => !empty && !inside)) {
    const first = line.indent < column;
    if (first && !upwards) break;
    if (line.column === column && line.key !== null) found.push(line.key);
    if (first) break;
  }
  return found;
}
