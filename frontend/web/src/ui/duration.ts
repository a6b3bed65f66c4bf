/** Spans of time in at most two units, in the reader's language: "12s", "3m 5s", "2h 14m", "5d 3h". */

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

export function formatDuration(seconds: number, language: string): string {
  const whole = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([, size]) => whole >= size);
  if (first < 0) return unit(0, 'second', language);
  const [name, size] = UNITS[first] ?? UNITS[3];
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((whole % size) / next[1]) : 0;
  const big = unit(Math.floor(whole / size), name, language);
  return next && rest > 0 ? `${big} ${unit(rest, next[0], language)}` : big;
}

function unit(value: number, name: string, language: string): string {
  return new Intl.NumberFormat(language, { style: 'unit', unit: name, unitDisplay: 'narrow' }).format(value);
}
