/**
 * A YAML document that is being typed, line by line: what each line opens, and which lines are the inside of a text or of
 * brackets. It stands what no parser does. Pure; knows nothing of manifests.
 */
export interface Line {
  /** Where its first word begins, or for an empty line where the cursor or its blanks end. */
  indent: number;
  /** Columns of the dashes it begins with. */
  dashes: number[];
  /** Column of what follows the dashes. */
  column: number;
  /** What stands before the colon; null where there is none. */
  key: string | null;
  /** What stands after it, or all of it. */
  value: string;
  /** Column of the value. */
  valueColumn: number;
  /** Nothing but blanks or a comment. */
  empty: boolean;
  /** In a block of text, in brackets or in quotes that an earlier line opened. */
  inside: boolean;
}

const KEY = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|((?:[^\s"'#&*!|>%@`{}[\],?:-]|[-?:](?=\S))(?:[^\s:]|:(?=\S)|\s+(?=[^\s:#]))*?))\s*:(?=\s|$)/;
const BLOCK = /^(?:[&!]\S*\s+)*[|>][-+0-9]*\s*(?:#.*)?$/;

/** Brackets and quotes that are open still. */
interface Nesting {
  depth: number;
  quote: string;
}

/** What an earlier line opened: a block of text (`nesting` is null), or brackets or quotes. */
interface Open {
  above: number;
  nesting: Nesting | null;
}

export function readLines(texts: readonly string[]): Line[] {
  let open: Open | null = null;
  return texts.map((text) => {
    const line = readLine(text);
    const inside = open !== null && line.indent > open.above;
    if (!inside && line.empty) return line;
    open = inside && open ? goneOn(open, text) : opened(line);
    return { ...line, inside };
  });
}

function goneOn(open: Open, text: string): Open | null {
  if (open.nesting === null) return open;
  const nesting = nestedAfter(text, open.nesting);
  return nesting === null ? null : { ...open, nesting };
}

function opened(line: Line): Open | null {
  const above = line.key === null ? (line.dashes.at(-1) ?? line.column) : line.column;
  if (BLOCK.test(line.value)) return { above, nesting: null };
  const value = line.value.replace(/^(?:[&!]\S*\s+)*/, '');
  const nesting = /^["'{[]/.test(value) ? nestedAfter(value, { depth: 0, quote: '' }) : null;
  return nesting === null ? null : { above, nesting };
}

function readLine(text: string): Line {
  const indent = text.length - text.trimStart().length;
  const dashes: number[] = [];
  let column = indent;
  for (let dash = /^-(?:\s+|$)/.exec(text.slice(column)); dash; dash = /^-(?:\s+|$)/.exec(text.slice(column))) {
    dashes.push(column);
    column += dash[0].length;
  }
  const content = text.slice(column);
  const found = KEY.exec(content);
  const after = found ? content.slice(found[0].length) : content;
  const value = after.trimStart();
  return {
    indent,
    dashes,
    column,
    key: found ? (found[1] ?? found[2] ?? found[3] ?? '') : null,
    value: value.trimEnd(),
    valueColumn: text.length - value.length,
    empty: dashes.length === 0 && (content === '' || content.startsWith('#')),
    inside: false,
  };
}

/** What is open after more of a value; null if nothing is. */
function nestedAfter(text: string, { depth, quote }: Nesting): Nesting | null {
  for (let i = 0; i < text.length; i += 1) {
    const at = text[i] ?? '';
    if (quote === '"' && at === '\\') i += 1;
    else if (quote) quote = at === quote ? '' : quote;
    else if (at === '"' || at === "'") quote = at;
    else if (at === '{' || at === '[') depth += 1;
    else if (at === '}' || at === ']') depth -= 1;
    if (!quote && depth <= 0) return null;
  }
  return { depth, quote };
}
