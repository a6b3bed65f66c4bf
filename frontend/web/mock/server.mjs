/**
 * A stand-in for the server while the console is worked on: the built console, the REST answers its pages need and a
 * websocket of changes, with the product's own content security policy. Made-up data; nothing of it is shipped.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';

import { WebSocketServer } from 'ws';

import { actionsIn, makeFleet } from './fleet.mjs';
import { makeQuotas } from './quotas.mjs';

const PORT = Number(process.env.PORT ?? 8099);
const DIST = new URL('../dist/', import.meta.url);
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };
const POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; object-src 'none'; base-uri 'self'";

const fleet = makeFleet();
const quotas = makeQuotas();
let signedIn = process.env.SIGNED_OUT === undefined;

const paged = (rows, query) => {
  const size = Number(query.get('page_size') ?? 50);
  const page = Number(query.get('page') ?? 1);
  return { count: rows.length, next: null, previous: null, results: rows.slice((page - 1) * size, page * size) };
};

const problem = (status, title, detail) => [status, { type: 'about:blank', title, status, detail }];

function jobsMatching(query) {
  const exact = ['state', 'namespace', 'kind', 'cluster'].filter((name) => query.get(name));
  const rows = fleet.jobs.filter(
    (job) => exact.every((name) => job[name] === query.get(name)) && job.name.includes(query.get('search') ?? ''),
  );
  const ordering = query.get('ordering') ?? '-created_at';
  const field = ordering.replace('-', '');
  const sign = ordering.startsWith('-') ? -1 : 1;
  return rows.sort((a, b) => (a[field] < b[field] ? -sign : a[field] > b[field] ? sign : 0));
}

const ROUTES = [
  ['GET', /^session\/$/, () => [200, { signed_in: signedIn, username: signedIn ? 'admin' : '' }]],
  ['POST', /^session\/$/, (_, __, body) => signIn(body)],
  ['DELETE', /^session\/$/, () => ((signedIn = false), [204])],
  ['GET', /^me\/$/, () => [200, fleet.me]],
  ['GET', /^clusters\/$/, (_, query) => [200, paged(fleet.clusters, query)]],
  ['GET', /^clusters\/([^/]+)\/nodes\/$/, ([name], query) => [200, paged(fleet.nodes(name), query)]],
  ['GET', /^jobs\/$/, (_, query) => [200, paged(jobsMatching(query), query)]],
  ['GET', /^jobs\/([^/]+)\/$/, ([id]) => withJob(id, (job) => [200, { ...job, manifest: {}, status: {}, binding: null }])],
  ['GET', /^jobs\/([^/]+)\/events\/$/, ([id], query) => withJob(id, (job) => [200, paged(fleet.events(job), query)])],
  ['GET', /^jobs\/([^/]+)\/pods\/$/, ([id], query) => withJob(id, (job) => [200, paged(fleet.pods(job), query)])],
  ['POST', /^jobs\/([^/]+)\/(suspend|resume)\/$/, ([id, action]) => withJob(id, (job) => [200, steer(job, action)])],
  ['DELETE', /^jobs\/([^/]+)\/$/, ([id]) => withJob(id, (job) => (fleet.jobs.splice(fleet.jobs.indexOf(job), 1), [204]))],
  ['GET', /^quota\/tree\/$/, () => [200, quotas.tree()]],
  ['PATCH', /^quota\/tree\/$/, (_, __, body) => [200, quotas.patch(JSON.parse(body))]],
  ['POST', /^quota\/tree\/preview\/$/, (_, __, body) => [200, quotas.preview(JSON.parse(body))]],
  ['POST', /^quota\/tree\/revert\/$/, (_, __, body) => [200, quotas.revert(JSON.parse(body))]],
  ['GET', /^quota\/tree\/history\/$/, (_, query) => [200, paged(quotas.history(), query)]],
  ['GET', /^quota\/tree\/history\/(\d+)\/$/, ([generation]) => [200, quotas.generation(Number(generation))]],
  ['POST', /^queues\/([^/]+)\/(hold|drain|stop|open)\/$/, ([name, verb], _, body) => [200, quotas.queue(name, verb, JSON.parse(body))]],
];

function withJob(id, answer) {
  const job = fleet.jobs.find((one) => one.id === id);
  return job ? answer(job) : problem(404, 'Not found', 'There is no such job.');
}

function steer(job, action) {
  job.suspended = action === 'suspend';
  job.state = job.suspended ? 'Suspended' : 'Queued';
  job.reason = { code: action, message: job.suspended ? 'Suspended by admin.' : 'Waiting for its turn.' };
  job.cluster = null;
  job.actions = actionsIn(job.state);
  return job;
}

function signIn(body) {
  signedIn = JSON.parse(body).password === 'convoy';
  return signedIn ? [200, fleet.me] : problem(401, 'Not signed in', 'The user name or the password is wrong.');
}

function answer(method, path, query, body) {
  if (!signedIn && path !== 'session/') return problem(401, 'Not signed in', 'Sign in to go on.');
  for (const [wanted, pattern, run] of ROUTES) {
    const found = wanted === method && pattern.exec(path);
    if (found) return run(found.slice(1), query, body);
  }
  return problem(404, 'Not found', `Nothing at ${path}.`);
}

async function page(path) {
  const name = extname(path) === '' ? 'index.html' : path.slice(1);
  return [await readFile(new URL(name, DIST)), TYPES[extname(name)] ?? 'text/html'];
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://mock');
  let body = '';
  for await (const part of request) body += part;
  response.setHeader('Content-Security-Policy', POLICY);
  if (url.pathname === '/livez') return response.end('ok');
  if (url.pathname.startsWith('/api/v1/')) {
    const [status, json] = answer(request.method, url.pathname.slice(8), url.searchParams, body);
    response.writeHead(status, { 'Content-Type': 'application/json' });
    return response.end(json === undefined ? '' : JSON.stringify(json));
  }
  try {
    const [content, type] = await page(url.pathname);
    response.writeHead(200, { 'Content-Type': type });
    response.end(content);
  } catch {
    response.writeHead(404).end();
  }
});

const sockets = new WebSocketServer({ server, path: '/ws/changes/' });
const tell = (message) => sockets.clients.forEach((socket) => socket.send(JSON.stringify(message)));
setInterval(() => tell({ type: 'ping' }), 15_000);
setInterval(() => tell(fleet.tick()), 1_500);

server.listen(PORT, '127.0.0.1', () => console.log(`http://127.0.0.1:${PORT}  (admin / convoy)`));
