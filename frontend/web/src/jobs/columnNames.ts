/** Which columns the list of jobs shows, kept in the address with the filters, so that a saved view has them. Pure. */

export const ALWAYS = ['name', 'state'] as const;
export const OPTIONAL = ['reason', 'queue', 'user', 'cluster', 'gpus', 'priority', 'attempt', 'policy', 'ran', 'age'] as const;

export type OptionalColumn = (typeof OPTIONAL)[number];
export type ColumnName = (typeof ALWAYS)[number] | OptionalColumn;

export const DEFAULT: readonly OptionalColumn[] = ['reason', 'queue', 'user', 'cluster', 'gpus', 'ran', 'age'];
const NONE = 'none';

/** In their own order, whatever the address says; what is no column is left out. */
export function readColumns(text: string | null): readonly OptionalColumn[] {
  if (!text) return DEFAULT;
  const named = new Set(text.split(','));
  const shown = OPTIONAL.filter((name) => named.has(name));
  return shown.length > 0 || text === NONE ? shown : DEFAULT;
}

/** Empty for those that are shown anyway. */
export function writeColumns(shown: readonly OptionalColumn[]): string {
  if (shown.length === DEFAULT.length && shown.every((name) => DEFAULT.includes(name))) return '';
  return OPTIONAL.filter((name) => shown.includes(name)).join(',') || NONE;
}
