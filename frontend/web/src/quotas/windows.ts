/** The attribute `windows` of a quota as rows of a form, and back. The server has the last word on what is valid. Pure. */

const AMOUNTS = ['min', 'max'] as const;

export interface WindowRow {
  /** Whether it opens again and again, by cron, instead of once. */
  again: boolean;
  from: string;
  to: string;
  cron: string;
  duration: string;
  'time-zone': string;
  lead: string;
  /** Such as `nvidia.com/gpu=8, cpu=4`. */
  min: string;
  max: string;
}

export const EMPTY: WindowRow = { again: true, from: '', to: '', cron: '', duration: '', 'time-zone': '', lead: '', min: '', max: '' };

/** null: the text is no list of windows, and has to be mended as text. */
export function rowsOf(text: string): WindowRow[] | null {
  if (text.trim() === '') return [];
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return null;
    const windows: unknown[] = list;
    return windows.every(isPlain) ? windows.map(rowOf) : null;
  } catch {
    return null;
  }
}

export function textOf(rows: WindowRow[]): string {
  return rows.length === 0 ? '' : JSON.stringify(rows.map(windowOf));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.entries(value).every(([key, of]) => (key === 'min' || key === 'max' ? isAmounts(of) : Object.hasOwn(EMPTY, key) && key !== 'again' && typeof of === 'string'));
}

function isAmounts(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isExact);
}

/** Whether the amount is what was written: a number beyond 2^53 is not, by the time it has been read. */
function isExact(amount: unknown): boolean {
  return typeof amount === 'string' || (typeof amount === 'number' && Math.abs(amount) <= Number.MAX_SAFE_INTEGER);
}

function rowOf(window: Record<string, unknown>): WindowRow {
  const amounts = AMOUNTS.map((bound) => [bound, Object.entries((window[bound] ?? {}) as Record<string, string | number>).map(([name, amount]) => `${name}=${amount}`).join(', ')]);
  const bounds = Object.fromEntries(amounts) as Record<string, string>;
  return { ...EMPTY, ...window, again: 'cron' in window, ...bounds };
}

function windowOf({ again, ...row }: WindowRow): Record<string, unknown> {
  const times = again ? (['cron', 'duration', 'time-zone'] as const) : (['from', 'to'] as const);
  const stated = [...times, 'lead' as const].filter((key) => row[key].trim() !== '' || key === 'cron');
  return {
    ...Object.fromEntries(stated.map((key) => [key, row[key].trim()])),
    ...Object.fromEntries(AMOUNTS.filter((bound) => row[bound].trim() !== '').map((bound) => [bound, amountsOf(row[bound])])),
  };
}

/** What is no amount, or stands twice, is handed on as it is written, for the server to refuse. */
function amountsOf(text: string): Record<string, string | number> {
  const amounts = new Map<string, string | number>();
  for (const part of text.split(',').map((each) => each.trim()).filter(Boolean)) {
    const [name = '', amount = ''] = part.split('=').map((each) => each.trim());
    amounts.set(amounts.has(name) ? part : name, /^\d+$/.test(amount) && isExact(Number(amount)) ? Number(amount) : amount);
  }
  return Object.fromEntries(amounts);
}
