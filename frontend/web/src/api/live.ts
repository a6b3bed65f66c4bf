/**
 * The open line to `/ws/changes/`: kept open with back-off, watched for silence, paused on request or while the page is hidden.
 * It hands changes on and says when everything may be stale; what to fetch is not its business.
 */
import { type Change, readChange } from './changes.ts';

export interface LiveState {
  status: 'connecting' | 'live' | 'paused' | 'lost';
  lastEventAt: number | null;
}

export interface LiveOptions {
  open: () => WebSocket;
  now: () => number;
  random: () => number;
  onChange: (change: Change) => void;
  /** Changes may have been missed: fetch all that is shown. */
  onGap: () => void;
  /** The line broke: the server may be away. */
  onLost: () => void;
  /** The server closed the line because the session is over. */
  onSignedOut: () => void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
/** Two pings and a bit: the server sends one every 15 s. */
const SILENCE_MS = 35_000;
const SIGNED_OUT_CODES = new Set([4401, 4403]);

export class Live {
  private state: LiveState = { status: 'connecting', lastEventAt: null };
  private readonly listeners = new Set<() => void>();
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private opened = false;
  private missed = false;
  private paused = false;
  private hidden = false;

  constructor(private readonly options: LiveOptions) {}

  readonly read = (): LiveState => this.state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  start(): void {
    if (this.socket) return;
    const socket = this.options.open();
    this.socket = socket;
    socket.onopen = () => this.whenOpen();
    socket.onmessage = (event) => this.whenMessage(String(event.data));
    socket.onclose = (event) => this.whenClosed(socket, event.code);
  }

  stop(): void {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  setPaused(paused: boolean): void {
    this.paused = paused;
    this.update({ status: this.statusNow() });
    this.catchUp();
  }

  setHidden(hidden: boolean): void {
    this.hidden = hidden;
    this.catchUp();
  }

  /** The network is back, or the user asks: do not wait for the back-off to end. */
  reconnect(): void {
    if (this.socket) return;
    clearTimeout(this.timer);
    this.start();
  }

  private whenOpen(): void {
    this.failures = 0;
    if (this.opened) this.missed = true;
    this.opened = true;
    this.update({ status: this.statusNow() });
    this.watchSilence();
    this.catchUp();
  }

  private whenMessage(text: string): void {
    this.watchSilence();
    const change = readChange(text);
    if (!change) return;
    if (this.paused || this.hidden) this.missed = true;
    else this.options.onChange(change);
    this.update({ lastEventAt: this.options.now() });
  }

  private whenClosed(socket: WebSocket, code: number): void {
    if (this.socket !== socket) return;
    this.socket = null;
    clearTimeout(this.timer);
    this.update({ status: this.statusNow() });
    if (SIGNED_OUT_CODES.has(code)) {
      this.options.onSignedOut();
      return;
    }
    this.options.onLost();
    this.timer = setTimeout(() => this.start(), this.nextWait());
  }

  private nextWait(): number {
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.failures);
    this.failures += 1;
    return wait * (0.5 + this.options.random() / 2);
  }

  private watchSilence(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.socket?.close(), SILENCE_MS);
  }

  private catchUp(): void {
    if (!this.missed || this.paused || this.hidden) return;
    this.missed = false;
    this.options.onGap();
  }

  private statusNow(): LiveState['status'] {
    if (this.paused) return 'paused';
    if (this.socket?.readyState === 1) return 'live';
    return this.opened || this.failures > 0 ? 'lost' : 'connecting';
  }

  private update(part: Partial<LiveState>): void {
    this.state = { ...this.state, ...part };
    this.listeners.forEach((listener) => listener());
  }
}
