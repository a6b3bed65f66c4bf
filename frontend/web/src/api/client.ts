/** The one door to the REST API: JSON in and out, the CSRF header, problems as errors, sign-in and availability reported to `connection`. */
import { connection } from './connection.ts';
import { Problem, readProblem, ServerAway } from './problem.ts';

const GATEWAY_ERRORS = new Set([502, 503, 504]);

/** Where a wrong password is also a 401, and says nothing of the session. */
const SESSION = 'session/';

/** A list is repeated, once for each of its words. */
export type Query = Record<string, string | number | readonly string[] | undefined>;

interface Options {
  query?: Query;
  body?: unknown;
  yaml?: string;
  signal?: AbortSignal;
}

export const api = {
  get: <Answer>(path: string, options: Options = {}) => send<Answer>('GET', path, options),
  post: <Answer>(path: string, body?: unknown) => send<Answer>('POST', path, { body }),
  put: <Answer>(path: string, body?: unknown) => send<Answer>('PUT', path, { body }),
  patch: <Answer>(path: string, body?: unknown) => send<Answer>('PATCH', path, { body }),
  /** Manifests as they were written. */
  postYaml: <Answer>(path: string, yaml: string, signal?: AbortSignal) =>
    send<Answer>('POST', path, { yaml, ...(signal ? { signal } : {}) }),
  delete: <Answer>(path: string) => send<Answer>('DELETE', path, {}),
};

/** Which of the product's pages asks, for the history; empty: the console. */
export const door = { name: '' };

async function send<Answer>(method: string, path: string, options: Options): Promise<Answer> {
  const asked = connection.sessions();
  const response = await answerOf(method, path, options);
  if (GATEWAY_ERRORS.has(response.status)) {
    connection.serverAway();
    throw new ServerAway(`HTTP ${response.status}`);
  }
  connection.serverAnswered();
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as Answer;
  const problem = await readProblem(response);
  if (problem.status === 401 && path !== SESSION) {
    if (!connection.sessionExpired(asked)) return send(method, path, options);
    problem.toldElsewhere = true;
  }
  throw problem;
}

async function answerOf(method: string, path: string, { query, body, yaml, signal }: Options): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (door.name !== '') headers['X-Convoy-Door'] = door.name;
  if (method !== 'GET') headers['X-CSRFToken'] = cookie('csrftoken');
  if (yaml !== undefined) headers['Content-Type'] = 'application/yaml';
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(`/api/v1/${path}${searchOf(query)}`, {
      method,
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(yaml === undefined ? {} : { body: yaml }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    connection.serverAway();
    throw new ServerAway(String(error));
  }
}

function searchOf(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([key, value]) => [value ?? []].flat().map((each) => [key, String(each)]));
  const search = new URLSearchParams(given.filter(([, value]) => value !== ''));
  return search.size ? `?${search}` : '';
}

function cookie(name: string): string {
  const found = document.cookie.split('; ').find((part) => part.startsWith(`${name}=`));
  return found ? decodeURIComponent(found.slice(name.length + 1)) : '';
}

/** Whether asking again may help: yes for silence and for the server's own errors, never for a refusal. */
export function worthRetrying(failures: number, error: Error): boolean {
  if (error instanceof Problem) return error.status >= 500 && failures < 2;
  return error instanceof ServerAway && failures < 1;
}
