/** The lines of a pod's log as state: gathered between two frames, so that a talkative pod does not freeze the page. */
import { useEffect, useState } from 'react';

import { kept, readLog } from './logLines.ts';

interface Log {
  of: string;
  lines: string[];
  error: Error | null;
  ended: boolean;
}

const EMPTY: Omit<Log, 'of'> = { lines: [], error: null, ended: false };

export function useLog(id: string, pod: string, attempt: number, follow: boolean, tries: number): Log {
  const of = `${id}/${pod}/${attempt}/${follow}/${tries}`;
  const [log, setLog] = useState<Log>({ of, ...EMPTY });
  useEffect(() => {
    const stop = new AbortController();
    let waiting: string[] = [];
    let frame = 0;
    const mine = (part: Partial<Log>) =>
      setLog((now) => ({ ...(now.of === of ? now : { of, ...EMPTY }), ...part }));
    const flush = () => {
      const more = waiting;
      waiting = [];
      frame = 0;
      setLog((now) => ({ ...(now.of === of ? now : { of, ...EMPTY }), of, lines: kept(now.of === of ? now.lines : [], more) }));
    };
    readLog(id, pod, attempt, follow, stop.signal, (lines) => {
      waiting = kept(waiting, lines);
      frame ||= requestAnimationFrame(flush);
    }).then(
      () => mine({ ended: true }),
      (error: unknown) => {
        if (!stop.signal.aborted) mine({ error: error instanceof Error ? error : new Error(String(error)) });
      },
    );
    return () => {
      stop.abort();
      cancelAnimationFrame(frame);
    };
  }, [id, pod, attempt, follow, of]);
  return log.of === of ? log : { of, ...EMPTY };
}
