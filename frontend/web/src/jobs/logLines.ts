/** A log that is written while it is read: its lines as they come, from one long answer of the server. */
import { connection } from '../api/connection.ts';
import { readProblem } from '../api/problem.ts';

/** Lines kept: the latest. */
export const KEPT = 5_000;

const TAIL = 1_000;

/** Hands on the lines as they arrive, many at a time; ends with the log, or when `signal` says so. */
export async function readLog(
  id: string,
  pod: string,
  attempt: number,
  follow: boolean,
  signal: AbortSignal,
  onLines: (lines: string[]) => void,
): Promise<void> {
  const query = new URLSearchParams({ pod, attempt: String(attempt), tail: String(TAIL), follow: String(follow) });
  const asked = connection.sessions();
  const answer = await fetch(`/api/v1/jobs/${id}/logs/?${query}`, { signal, credentials: 'same-origin' });
  if (!answer.ok || !answer.body) {
    if (answer.status === 401 && !connection.sessionExpired(asked)) return readLog(id, pod, attempt, follow, signal, onLines);
    throw await readProblem(answer);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) onLines(lines);
  }
  if (rest) onLines([rest]);
}

export function kept(lines: string[], more: string[]): string[] {
  return [...lines, ...more].slice(-KEPT);
}
