import { beforeEach, describe, expect, test, vi } from 'vitest';

import { api, worthRetrying } from './client.ts';
import { connection } from './connection.ts';
import { Problem, ServerAway } from './problem.ts';

function serverSays(status: number, body: unknown = {}) {
  const fetch = vi.fn<typeof window.fetch>(() => Promise.resolve(new Response(JSON.stringify(body), { status })));
  vi.stubGlobal('fetch', fetch);
  return fetch;
}

describe('api', () => {
  beforeEach(() => {
    connection.serverAnswered();
    connection.sessionOpened();
  });

  test('asks with what is given and leaves out what is empty', async () => {
    const fetch = serverSays(200);
    await api.get('jobs/', { query: { state: 'Running', search: '', page: 2, kind: undefined } });
    expect(fetch.mock.calls[0]![0]).toBe('/api/v1/jobs/?state=Running&page=2');
  });

  test('repeats a list, one word at a time', async () => {
    const fetch = serverSays(200);
    await api.get('schemas/fields/', { query: { kind: 'Job', path: ['spec', 'a.b/c'] } });
    expect(fetch.mock.calls[0]![0]).toBe('/api/v1/schemas/fields/?kind=Job&path=spec&path=a.b%2Fc');
  });

  test('sends the CSRF token with what changes something', async () => {
    document.cookie = 'csrftoken=abc';
    const fetch = serverSays(200);
    await api.post('jobs/7/suspend/');
    expect(fetch.mock.calls[0]![1]?.headers).toMatchObject({ 'X-CSRFToken': 'abc' });
  });

  test('turns a refusal into a problem with its fields', async () => {
    serverSays(422, { title: 'Invalid', detail: 'replicas must be positive', errors: [{ field: 'replicas', detail: 'no' }] });
    const refused = await api.post('jobs/').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Problem);
    expect(refused).toMatchObject({ status: 422, message: 'replicas must be positive', fields: [{ field: 'replicas' }] });
  });

  test('takes 401 for the end of the session', async () => {
    serverSays(401);
    await expect(api.get('jobs/')).rejects.toMatchObject({ name: 'Problem', toldElsewhere: true });
    expect(connection.read().session).toBe('expired');
  });

  test('asks again when somebody has signed in since, and takes nothing for the end of the new session', async () => {
    const fetch = vi.fn<typeof window.fetch>();
    fetch.mockImplementationOnce(() => {
      connection.sessionOpened();
      return Promise.resolve(new Response('{}', { status: 401 }));
    });
    fetch.mockImplementationOnce(() => Promise.resolve(new Response('{"count": 7}')));
    vi.stubGlobal('fetch', fetch);
    await expect(api.get('jobs/')).resolves.toEqual({ count: 7 });
    expect(connection.read().session).toBe('open');
  });

  test('does not take a wrong password for the end of the session', async () => {
    serverSays(401);
    await expect(api.post('session/', {})).rejects.toMatchObject({ name: 'Problem', toldElsewhere: false });
    expect(connection.read().session).toBe('open');
  });

  test.each([502, 503, 504])('takes %i for a server that is away', async (status) => {
    serverSays(status);
    await expect(api.get('jobs/')).rejects.toBeInstanceOf(ServerAway);
    expect(connection.read().server).toBe('down');
  });

  test('notices silence, and the next answer', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('refused')));
    await expect(api.get('jobs/')).rejects.toBeInstanceOf(ServerAway);
    expect(connection.read().server).toBe('down');
    serverSays(200);
    await api.get('jobs/');
    expect(connection.read().server).toBe('up');
  });
});

describe('worthRetrying', () => {
  test('asks again after silence and after errors of the server, never after a refusal', () => {
    expect(worthRetrying(0, new ServerAway())).toBe(true);
    expect(worthRetrying(0, new Problem(500, 'Oops', ''))).toBe(true);
    expect(worthRetrying(2, new Problem(500, 'Oops', ''))).toBe(false);
    expect(worthRetrying(0, new Problem(404, 'Not found', ''))).toBe(false);
  });
});
