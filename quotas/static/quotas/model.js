/**
 * The tree as it would be: what was loaded, and the changes made to it since, in the order the server will make them.
 * Knows nothing of the page. A change is kept as the server takes it; undoing one starts again from what was loaded.
 */

const ROOT = "root";

export class Model {
  constructor(loaded) {
    this.generation = loaded.generation;
    this.loaded = loaded;
    this.changes = [];
    this.rebuild();
  }

  /** Every resource any node names, devices first, counts last. */
  get resources() {
    const names = new Set(this.nodes().flatMap((node) => [...Object.keys(node.min), ...Object.keys(node.max)]));
    const rank = (name) => (name.startsWith("kube-queue/") || name === "pods" ? 2 : name.includes("/") ? 0 : 1);
    return [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  }

  nodes() {
    const found = [];
    const walk = (node) => {
      found.push(node);
      node.children.forEach(walk);
    };
    walk(this.root);
    return found;
  }

  find(path) {
    return this.nodes().find((node) => node.path === path);
  }

  /** Makes a change and remembers it. Throws what a person can read when it makes no sense. */
  make(change) {
    this.apply(change);
    this.changes.push(change);
  }

  undo() {
    this.changes.pop();
    this.rebuild();
  }

  discard() {
    this.changes = [];
    this.rebuild();
  }

  rebuild() {
    const live = new Map(this.loaded.nodes.map((node) => [node.path, node]));
    this.root = built(this.loaded.manifest.spec.root, null, live);
    this.changes.forEach((change) => this.apply(change));
  }

  apply(change) {
    const node = this.find(change.path);
    switch (change.op) {
      case "edit":
        edit(node, change.set);
        break;
      case "add": {
        const parent = this.find(change.parent);
        adopt(parent, built(change.node, parent, new Map()));
        break;
      }
      case "remove":
        node.parent.children = node.parent.children.filter((each) => each !== node);
        break;
      case "rename":
        node.name = change.name;
        break;
      case "move": {
        const goal = this.find(change.parent);
        if (goal === node || goal.path.startsWith(`${node.path}/`)) throw new Error("a quota cannot go below itself");
        node.parent.children = node.parent.children.filter((each) => each !== node);
        adopt(goal, node);
        break;
      }
    }
    renumber(this.root);
  }
}

/** Whether a node may go below another: both theirs, somewhere new, and no name twice. */
export function mayMove(node, goal) {
  return (
    node !== goal && node.mayEdit && goal.mayAdd && node.parent !== goal && !goal.path.startsWith(`${node.path}/`) &&
    !goal.children.some((each) => each.name === node.name)
  );
}

export function freeName(parent) {
  const taken = new Set(parent.children.map((each) => each.name));
  let number = parent.children.length + 1;
  while (taken.has(`quota-${number}`)) number += 1;
  return `quota-${number}`;
}

function built(written, parent, live) {
  const name = parent ? String(written.name) : ROOT;
  const path = parent ? `${parent.path}/${name}` : ROOT;
  const known = live.get(path);
  const node = {
    name, path, parent, known,
    min: { ...written.min }, max: { ...written.max }, attributes: { ...written.attributes },
    namespaces: [...(written.namespaces || [])],
    mayEdit: known ? known.may_edit : parent.mayAdd,
    mayAdd: known ? known.may_add : true,
  };
  node.children = (written.children || []).map((each) => built(each, node, live));
  return node;
}

function adopt(parent, node) {
  node.parent = parent;
  parent.children.push(node);
}

function edit(node, set) {
  for (const key of ["min", "max", "attributes"]) {
    for (const [name, value] of Object.entries(set[key] || {})) {
      if (value === null) delete node[key][name];
      else node[key][name] = value;
    }
  }
  if (set.namespaces) node.namespaces = set.namespaces;
}

function renumber(node) {
  node.path = node.parent ? `${node.parent.path}/${node.name}` : ROOT;
  node.children.forEach(renumber);
}
