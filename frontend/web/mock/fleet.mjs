/** A made-up fleet: four clusters, some hundred jobs in every state, the same each time, changing a little every tick. */

const GIB = 1024 ** 3;
const NAMESPACES = ['team-vision', 'team-speech', 'team-llm', 'research', 'default'];
const MODELS = ['llama-ft', 'resnet-50', 'whisper-asr', 'vit-pretrain', 'clip-align', 'mixtral-sft', 'bert-mlm', 'ddpm'];
const KINDS = ['PyTorchJob', 'PyTorchJob', 'PyTorchJob', 'Job'];
const STATES = [
  ...Array(9).fill('Running'), ...Array(5).fill('Queued'), ...Array(5).fill('Succeeded'),
  'Dispatched', 'Placed', 'Failed', 'Suspended', 'Moving', 'Backoff',
];
const REASONS = {
  Queued: ['DoesNotFit', 'Needs 32 GPUs on one cluster. hangzhou-a: 12 free, short by 20. beijing-h: 24 free, short by 8. jakarta-b: not ready.'],
  Admitted: ['Planning', 'Admitted; waiting for the next planning cycle.'],
  Placed: ['Dispatching', 'Placed on hangzhou-a; its 8 GPUs are held until the pods are bound.'],
  Dispatched: ['PodsStarting', '5 of 8 pods run; 3 are pulling their image.'],
  Failed: ['BackoffLimitExceeded', 'Worker 3 ended with exit code 137 (out of memory) 4 times; the limit is 3.'],
  Suspended: ['SuspendedByUser', 'Suspended by admin 2 hours ago.'],
  Moving: ['ClusterNotReady', 'jakarta-b has been silent for 5 minutes; moving to beijing-h (attempt 2).'],
  Backoff: ['BackOff', 'Attempt 3 failed; tried again in 40 s, without singapore-c.'],
};

const VERDICTS = [
  { cluster: 'hangzhou-a', fits: false, code: 'NotEnoughFree', message: 'short of 20 nvidia.com/gpu', short: { 'nvidia.com/gpu': 20 } },
  { cluster: 'beijing-h', fits: false, code: 'NotEnoughFree', message: 'short of 8 nvidia.com/gpu and 96 GiB', short: { 'nvidia.com/gpu': 8, memory: 96 * GIB } },
  { cluster: 'jakarta-b', fits: false, code: 'NotReady', message: 'no heartbeat for 5 minutes', short: {} },
];

export function actionsIn(state) {
  const may = (reason) => ({ allowed: reason === '', reason });
  const over = ['Succeeded', 'Failed'].includes(state) ? 'the job has finished' : '';
  const held = state === 'Suspended';
  return {
    suspend: may(over || (held ? 'the job is suspended already' : '')),
    resume: may(over || (held ? '' : 'the job is not suspended')),
    delete: may(''),
  };
}

function random(seed) {
  let state = seed;
  return () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648);
}

const agoS = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
const amounts = (allocatable, requested, held) => ({ allocatable, requested, held, free: allocatable - requested - held });

function cluster(name, region, nodes, used, held, more = {}) {
  const gpus = nodes * 8;
  const share = used / gpus;
  return {
    name, uid: name, state: 'Ready', reason: '', message: '', cordoned: false, drained: false, version: 'v1.32.4', provider: '', region,
    zone: `${region}-${name.at(-1)}`, labels: {}, taints: [], last_heartbeat: agoS(2), nodes: { total: nodes, ready: nodes },
    capacity: {
      'nvidia.com/gpu': amounts(gpus, used, held),
      cpu: amounts(nodes * 128_000, Math.round(nodes * 128_000 * share * 0.8), held * 8_000),
      memory: amounts(nodes * 1024 * GIB, Math.round(nodes * 1024 * share * 0.7) * GIB, held * 64 * GIB),
      pods: amounts(nodes * 110, nodes * 12, 0),
    },
    jobs: { running: Math.round(used / 9), placed: held ? 1 : 0 },
    ...more,
  };
}

function makeClusters() {
  return [
    cluster('hangzhou-a', 'cn-hangzhou', 24, 172, 8),
    cluster('beijing-h', 'cn-beijing', 16, 104, 0),
    cluster('jakarta-b', 'ap-southeast-5', 8, 40, 0, {
      state: 'NotReady', reason: 'Silent', message: 'No heartbeat for 5 minutes: connection refused', last_heartbeat: agoS(312),
      nodes: { total: 8, ready: 5 },
    }),
    cluster('singapore-c', 'ap-southeast-1', 12, 33, 16, { cordoned: true, version: 'v1.31.9' }),
  ];
}

function makeJob(index, pick, next) {
  const state = pick(STATES);
  const workers = pick([1, 1, 3, 3, 7, 15]);
  const each = pick([1, 2, 8]);
  const age = Math.round(next() ** 2 * 400_000) + 8;
  const [code, message] = REASONS[state] ?? [];
  const onCluster = ['Running', 'Placed', 'Dispatched', 'Succeeded'].includes(state);
  return {
    id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    kind: pick(KINDS), namespace: pick(NAMESPACES), name: `${pick(MODELS)}-${String(1000 + index)}`, state,
    reason: code ? { code, message, clusters: state === 'Queued' ? VERDICTS : [] } : null,
    cluster: onCluster ? pick(['hangzhou-a', 'beijing-h', 'singapore-c']) : null,
    attempt: state === 'Queued' ? 0 : 1, created_at: agoS(age),
    started_at: onCluster ? agoS(age * 0.9) : null, finished_at: state === 'Succeeded' ? agoS(age * 0.3) : null,
    roles: [
      { name: 'Master', replicas: 1, request: { cpu: 8000, memory: 64 * GIB, 'nvidia.com/gpu': each } },
      { name: 'Worker', replicas: workers, request: { cpu: 8000, memory: 64 * GIB, 'nvidia.com/gpu': each } },
    ],
    api_version: 'kubeflow.org/v1', labels: {}, queued_at: agoS(age), deleting_at: null, total: {}, policy: null, resource_version: index,
    actions: actionsIn(state),
    gpus: (workers + 1) * each, priority: pick([0, 0, 0, 50, 100]), suspended: state === 'Suspended',
  };
}

function nodesOf(found) {
  const { total, ready } = found.nodes;
  let left = found.capacity['nvidia.com/gpu'].requested;
  return Array.from({ length: total }, (_, index) => {
    const used = Math.min(8, Math.max(0, left - (index % 3)));
    left -= used;
    return {
      name: `${found.name}-gpu-${String(index + 1).padStart(2, '0')}`, cluster: found.name, ready: index < ready,
      unschedulable: index === 1, labels: {}, taints: [],
      allocatable: { cpu: 128_000, memory: 1024 * GIB, 'nvidia.com/gpu': 8, pods: 110 },
      requested: { cpu: used * 8000, memory: used * 64 * GIB, 'nvidia.com/gpu': used, pods: used + 4 },
    };
  });
}

function podsOf(job) {
  if (!job.cluster) return [];
  return job.roles.flatMap(({ name, replicas }) =>
    Array.from({ length: replicas }, (_, index) => ({
      name: `${job.name}-${name.toLowerCase()}-${index}`, uid: `${job.id}-${name}-${index}`, role: name, index, ready: '1/1', phase: job.state === 'Succeeded' ? 'Succeeded' : 'Running',
      node: `${job.cluster}-gpu-${String(index + 1).padStart(2, '0')}`, restarts: 0, reason: '', ip: '',
    })),
  );
}

function eventsOf(job) {
  const lines = [
    ['Submitted', `Accepted as a ${job.kind} of ${job.roles.length} roles asking for ${job.gpus} GPUs.`, 0],
    ['Queued', 'Waiting for its turn.', 1],
    ...(job.cluster ? [['ScheduleBindingSucceed', `Binding has been scheduled successfully. Result: {${job.cluster}:0,[{master 1} {worker ${job.roles[1].replicas}}]}`, 2], ['Dispatched', `Created on ${job.cluster}, attempt 1.`, 3]] : []),
    ...(job.state === 'Failed' ? [['Failed', job.reason.message, 30]] : []),
  ];
  return lines.map(([reason, message, after], index) => ({
    id: `${job.id}-${index}`, type: reason === 'Failed' ? 'Warning' : 'Normal', reason, message, source: 'convoy', count: 1,
    first_at: job.created_at, last_at: new Date(Date.parse(job.created_at) + after * 1000).toISOString(),
  }));
}

export function makeFleet() {
  const next = random(7);
  const pick = (list) => list[Math.floor(next() * list.length)];
  const clusters = process.env.EMPTY === undefined ? makeClusters() : [];
  const jobs = process.env.EMPTY === undefined ? Array.from({ length: 237 }, (_, index) => makeJob(index, pick, next)) : [];
  const can = Object.fromEntries(['apply', 'delete', 'suspend', 'resume', 'join', 'detach', 'cordon', 'label'].map((name) => [name, true]));
  let version = 1;
  return {
    me: { username: 'admin', roles: [{ role: 'fleet-admin', namespace: '' }], can },
    clusters, jobs,
    nodes: (name) => nodesOf(clusters.find((one) => one.name === name) ?? makeClusters()[0]),
    pods: podsOf,
    events: eventsOf,
    tick() {
      version += 1;
      const changed = clusters.length ? clusters[version % 2] : null;
      if (!changed) return { type: 'ping' };
      const gpus = changed.capacity['nvidia.com/gpu'];
      gpus.requested += version % 4 < 2 ? 1 : -1;
      gpus.free = gpus.allocatable - gpus.requested - gpus.held;
      changed.last_heartbeat = agoS(1);
      return { kind: 'Cluster', namespace: '', name: changed.name, id: changed.uid, version, action: 'modified' };
    },
  };
}
