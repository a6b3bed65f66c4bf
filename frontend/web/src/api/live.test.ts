import { beforeEach, describe, expect, test, vi } from 'vitest';

import { Live } from './live.ts';

class FakeSocket {
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  open() {
    this.readyState = 1;
    this.onopen?.();
  }

  say(message: object) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(code = 1006) {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

const CHANGE = { kind: 'Job', namespace: 'default', name: 'mnist', id: 'a', version: 1, action: 'modified' };

function lineWith() {
  const sockets: FakeSocket[] = [];
  const onChange = vi.fn();
  const onGap = vi.fn();
  const onLost = vi.fn();
  const onSignedOut = vi.fn();
  const live = new Live({
    open: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    now: () => Date.now(),
    random: () => 1,
    onChange,
    onGap,
    onLost,
    onSignedOut,
  });
  live.start();
  return { live, sockets, onChange, onGap, onLost, onSignedOut };
}

describe('Live', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  test('hands changes on and remembers when', () => {
    const { live, sockets, onChange } = lineWith();
    sockets[0]!.open();
    sockets[0]!.say(CHANGE);
    expect(onChange).toHaveBeenCalledExactlyOnceWith(CHANGE);
    expect(live.read()).toEqual({ status: 'live', lastEventAt: Date.now() });
  });

  test('takes a ping for a sign of life and nothing else', () => {
    const { live, sockets, onChange } = lineWith();
    sockets[0]!.open();
    sockets[0]!.say({ type: 'ping', version: 7 });
    expect(onChange).not.toHaveBeenCalled();
    expect(live.read().lastEventAt).toBeNull();
  });

  test('comes back with longer and longer waits, and then fetches all', async () => {
    const { live, sockets, onGap, onLost } = lineWith();
    sockets[0]!.open();
    sockets[0]!.close();
    expect(onLost).toHaveBeenCalledOnce();
    expect(live.read().status).toBe('lost');
    await vi.advanceTimersByTimeAsync(500);
    sockets[1]!.close();
    await vi.advanceTimersByTimeAsync(999);
    expect(sockets).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(onGap).not.toHaveBeenCalled();
    sockets[2]!.open();
    expect(onGap).toHaveBeenCalledOnce();
  });

  test('takes 35 s of silence for a dead line', async () => {
    const { sockets } = lineWith();
    sockets[0]!.open();
    await vi.advanceTimersByTimeAsync(36_000);
    expect(sockets).toHaveLength(2);
  });

  test('holds changes while paused and fetches all once when it goes on', () => {
    const { live, sockets, onChange, onGap } = lineWith();
    sockets[0]!.open();
    live.setPaused(true);
    sockets[0]!.say(CHANGE);
    sockets[0]!.say(CHANGE);
    expect(live.read().status).toBe('paused');
    expect(onChange).not.toHaveBeenCalled();
    live.setPaused(false);
    expect(onGap).toHaveBeenCalledOnce();
    expect(live.read().status).toBe('live');
  });

  test('fetches nothing for a page nobody looks at', () => {
    const { live, sockets, onChange, onGap } = lineWith();
    sockets[0]!.open();
    live.setHidden(true);
    sockets[0]!.say(CHANGE);
    expect(onChange).not.toHaveBeenCalled();
    live.setHidden(false);
    expect(onGap).toHaveBeenCalledOnce();
  });

  test.each([4401, 4403])('says that the session is over at code %i and waits to be asked', async (code) => {
    const { live, sockets, onSignedOut } = lineWith();
    sockets[0]!.open();
    sockets[0]!.close(code);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(onSignedOut).toHaveBeenCalledOnce();
    expect(sockets).toHaveLength(1);
    live.reconnect();
    expect(sockets).toHaveLength(2);
  });

  test('stays closed once stopped', async () => {
    const { live, sockets } = lineWith();
    sockets[0]!.open();
    live.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets).toHaveLength(1);
  });
});
