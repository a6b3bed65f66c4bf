/** Two texts line by line: what stayed, what is gone, what is new. Pure. */

export interface Line {
  mark: ' ' | '-' | '+';
  text: string;
}

/** By the longest common run of lines; ends that are alike are set aside first, so that the table stays small. */
export function diff(before: string, after: string): Line[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, fresh.length) - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  return [
    ...marked(' ', old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...marked(' ', old.slice(old.length - tail)),
  ];
}

export function isSame(lines: Line[]): boolean {
  return lines.every(({ mark }) => mark === ' ');
}

function middle(old: string[], fresh: string[]): Line[] {
  const common = lengths(old, fresh);
  const found: Line[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      found.push({ mark: ' ', text: old[i] ?? '' });
      i += 1;
      j += 1;
    } else if (at(common, i + 1, j) >= at(common, i, j + 1)) {
      found.push({ mark: '-', text: old[i] ?? '' });
      i += 1;
    } else {
      found.push({ mark: '+', text: fresh[j] ?? '' });
      j += 1;
    }
  }
  return [...found, ...marked('-', old.slice(i)), ...marked('+', fresh.slice(j))];
}

/** How many lines two rests have in common. */
function lengths(old: string[], fresh: string[]): Uint32Array[] {
  const table = Array.from({ length: old.length + 1 }, () => new Uint32Array(fresh.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      const alike = old[i] === fresh[j];
      put(table, i, j, alike ? at(table, i + 1, j + 1) + 1 : Math.max(at(table, i + 1, j), at(table, i, j + 1)));
    }
  }
  return table;
}

const at = (table: Uint32Array[], i: number, j: number) => table[i]?.[j] ?? 0;

function put(table: Uint32Array[], i: number, j: number, value: number): void {
  const row = table[i];
  if (row) row[j] = value;
}

function marked(mark: Line['mark'], lines: string[]): Line[] {
  return lines.map((text) => ({ mark, text }));
}
