/** A moment of a chart in words, to the second or the minute, as fine as its steps are. Pure. */

const MINUTE_S = 60;

export function momentOf(at: number, step: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(step < MINUTE_S ? { second: '2-digit' as const } : {}),
    hourCycle: 'h23',
  }).format(new Date(at * 1000));
}
