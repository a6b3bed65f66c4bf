/**
 * Turns a storm of "this changed" into few fetches: at most one per key and interval, never two at once, and always one
 * that started after the last change. Knows nothing of sockets or queries; time comes from outside.
 */
export type Key = readonly string[];

export interface CoalescerOptions {
  /** Least time between the starts of two fetches of one key. */
  intervalMs: number;
  /** How long the first change waits for others that belong with it. */
  settleMs: number;
  now: () => number;
  later: (run: () => void, ms: number) => void;
  fetch: (key: Key) => Promise<unknown>;
}

export class Coalescer {
  private readonly waiting = new Map<string, { dirty: boolean }>();

  constructor(private readonly options: CoalescerOptions) {}

  changed(key: Key): void {
    const name = JSON.stringify(key);
    const entry = this.waiting.get(name);
    if (entry) {
      entry.dirty = true;
      return;
    }
    this.waiting.set(name, { dirty: true });
    this.options.later(() => void this.run(key, name), this.options.settleMs);
  }

  /** Keys with a fetch under way or just behind them. */
  get size(): number {
    return this.waiting.size;
  }

  private async run(key: Key, name: string): Promise<void> {
    const entry = this.waiting.get(name);
    if (!entry?.dirty) {
      this.waiting.delete(name);
      return;
    }
    entry.dirty = false;
    const started = this.options.now();
    await this.options.fetch(key).catch(() => undefined);
    const rest = started + this.options.intervalMs - this.options.now();
    this.options.later(() => void this.run(key, name), Math.max(0, rest));
  }
}
