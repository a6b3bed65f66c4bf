/** A made-up quota tree that can be changed, gone back to and closed, with numbers that always look busy. */

const GPU = 'nvidia.com/gpu';
const JOBS = 'kube-queue/max-jobs';
const bounds = (min, max) => ({ min: { [GPU]: min, cpu: String(min * 12) }, max: { [GPU]: max, cpu: String(max * 12) } });
const quota = (name, min, max, children, namespaces) => ({
  name,
  ...(namespaces ? { namespaces } : {}),
  ...bounds(min, max),
  ...(children ? { children } : {}),
});

const START = {
  apiVersion: 'scheduling.sigs.k8s.io/v1beta1',
  kind: 'ElasticQuotaTree',
  metadata: { name: 'elasticquotatree', namespace: 'kube-system' },
  spec: {
    root: quota('root', 128, 128, [
      quota('research', 48, 96, [
        quota('vision', 16, 48, undefined, ['team-vision']),
        quota('speech', 16, 32, undefined, ['team-speech']),
        quota('night', 0, 64, undefined, ['research']),
      ]),
      quota('llm', 64, 112, undefined, ['team-llm']),
      quota('serving', 16, 32, undefined, ['default']),
    ]),
  },
};
const USED = { 'root/research/vision': 24, 'root/research/night': 16, 'root/llm': 64, 'root/serving': 8 };
const WAITING = { 'root/research/speech': 24, 'root/llm': 16 };

const walk = (node, parent = '') => {
  const path = parent ? `${parent}/${node.name}` : node.name;
  return [{ path, parent, node }, ...(node.children ?? []).flatMap((child) => walk(child, path))];
};
const below = (amounts, path) =>
  Object.entries(amounts).reduce((sum, [leaf, amount]) => sum + (`${leaf}/`.startsWith(`${path}/`) ? amount : 0), 0);

function amount(resource, { node, path }) {
  const scale = resource === 'cpu' ? 12_000 : resource === JOBS ? 1 / 8 : 1;
  const used = below(USED, path) * scale;
  const whole = (text) => (text === undefined ? undefined : Number(text) * (resource === 'cpu' ? 1000 : 1));
  const min = whole(node.min?.[resource]) ?? 0;
  const lent = path === 'root/research/speech' && resource !== JOBS ? Math.min(min, 12 * scale) : 0;
  const borrowed = resource === JOBS ? 0 : Math.max(0, used - min);
  return { used, requested: used + below(WAITING, path) * scale, min, max: whole(node.max?.[resource]) ?? null, borrowed, lent };
}

function change(root, { op, path, parent, set, node, name }) {
  const all = walk(root);
  const at = (wanted) => all.find((each) => each.path === wanted)?.node;
  const take = () => {
    const home = at(path.slice(0, path.lastIndexOf('/')));
    const found = at(path);
    home.children = home.children.filter((each) => each !== found);
    return found;
  };
  if (op === 'edit') {
    for (const [key, value] of Object.entries(set)) {
      const merged = Array.isArray(value) ? value : { ...at(path)[key], ...value };
      at(path)[key] = Array.isArray(value) ? value : Object.fromEntries(Object.entries(merged).filter(([, one]) => one !== null));
    }
  } else if (op === 'rename') at(path).name = name;
  else if (op === 'remove') take();
  else {
    const goal = at(parent);
    goal.children = [...(goal.children ?? []), op === 'add' ? node : take()];
  }
}

export function makeQuotas() {
  const history = [];
  const states = {};
  const save = (manifest, comment, by = 'admin') =>
    history.unshift({ generation: history.length + 1, by, at: new Date().toISOString(), comment, source: 'rest', manifest });
  save(START, 'the first tree', 'grace');

  const queueOf = (path) => `${path.replaceAll('/', '-')}-kdzw7`;
  const after = (changes) => {
    const manifest = structuredClone(history[0].manifest);
    changes.forEach((each) => change(manifest.spec.root, each));
    return manifest;
  };
  const told = () => ({ action: 'configured', generation: history[0].generation, warnings: [] });

  return {
    tree() {
      const [{ manifest, generation, by, at }] = history;
      const nodes = walk(manifest.spec.root).map((each) => ({
        path: each.path, name: each.node.name, parent: each.parent, leaf: !each.node.children,
        namespaces: each.node.namespaces ?? [], attributes: each.node.attributes ?? {}, queue: queueOf(each.path),
        queue_state: states[queueOf(each.path)]?.state ?? 'Open', queue_state_by: 'admin',
        queue_comment: states[queueOf(each.path)]?.comment ?? '', may_run: true, may_edit: true, may_add: true,
        resources: Object.fromEntries([GPU, 'cpu', JOBS].map((resource) => [resource, amount(resource, each)])),
      }));
      return { name: 'elasticquotatree', uid: 'tree', generation, resource_version: generation, created_at: at, changed_by: by, manifest, warnings: [], nodes };
    },
    preview({ changes }) {
      const effect = {
        starts: [{ job: 'PyTorchJob team-speech/whisper-asr-9', leaf: 'root/research/speech', code: '', message: 'starts in root/research/speech' }],
        waits: [],
        reclaimed: [{ job: 'PyTorchJob research/ddpm-2', leaf: 'root/research/night', code: '', message: 'makes room for whisper-asr-9' }],
        unbound: [],
        excess: [],
      };
      return { saves: true, faults: [], refusals: [], warnings: [], touched: [], effect, manifest: after(changes) };
    },
    patch({ changes, comment }) {
      save(after(changes), comment);
      return told();
    },
    revert({ to, comment }) {
      save(history.find(({ generation }) => generation === to).manifest, comment);
      return told();
    },
    history: () => history.map(({ generation, by, at, comment, source }) => ({ generation, by, at, comment, source })),
    generation(wanted) {
      const found = history.find(({ generation }) => generation === wanted);
      return { ...found, differences: [] };
    },
    queue(name, verb, { comment }) {
      states[name] = { state: { open: 'Open', hold: 'Held', drain: 'Draining', stop: 'Stopped' }[verb], comment };
      return { name, state: states[name].state };
    },
  };
}
