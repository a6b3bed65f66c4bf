/**
 * A file of manifests as a person edits it: read for the form, changed in place by the form (comments and order stay), and
 * searched for the line a fault is about. Pure. Knows the shape of a pod template and nothing of any one kind.
 */
import { type Document, isMap, isScalar, LineCounter, parseAllDocuments } from 'yaml';

type Path = (string | number)[];

export interface RoleField {
  /** The key over the template: "Master", "worker", or the kind where there is none. */
  name: string;
  replicas: { path: Path; value: number } | null;
  container: Path;
  image: string;
  gpus: number;
  cpu: string;
  memory: string;
}

export type Field = 'replicas' | 'image' | 'gpus' | 'cpu' | 'memory';

export interface JobForm {
  /** Which document of the file. */
  index: number;
  kind: string;
  name: string;
  namespace: string;
  roles: RoleField[];
}

export interface Mark {
  line: number;
  column: number;
  message: string;
}

const GPU = 'nvidia.com/gpu';

export function readForms(text: string): JobForm[] {
  return documentsOf(text).flatMap((document, index) => {
    if (document.errors.length > 0 || !isMap(document.contents)) return [];
    const roles = rolesOf(document);
    if (roles.length === 0) return [];
    const [kind, name, namespace] = [['kind'], ['metadata', 'name'], ['metadata', 'namespace']].map((path) =>
      textAt(document, path),
    );
    return [{ index, kind: kind ?? '', name: name ?? '', namespace: namespace ?? '', roles }];
  });
}

/** The same file with one value changed; an empty text takes the key away. */
export function withValue(text: string, index: number, path: Path, value: string | number): string {
  const documents = documentsOf(text);
  const document = documents[index];
  if (!document) return text;
  if (value === '') document.deleteIn(path);
  else document.setIn(path, value);
  return documents.map((each) => each.toString({ lineWidth: 0 })).join('');
}

/** The file with one field of a role changed: an amount wherever it is written (limit, request), else as a limit. */
export function withField(text: string, form: JobForm, role: RoleField, field: Field, value: string | number): string {
  if (field === 'replicas') return role.replicas ? withValue(text, form.index, role.replicas.path, value) : text;
  if (field === 'image') return withValue(text, form.index, [...role.container, 'image'], value);
  const resources: Path = [...role.container, 'resources'];
  const name = field === 'gpus' ? GPU : field;
  const document = documentsOf(text)[form.index];
  const written = ['limits', 'requests'].filter((part) => document?.hasIn([...resources, part, name]));
  return (written.length > 0 ? written : ['limits']).reduce(
    (changed, part) => withValue(changed, form.index, [...resources, part, name], value),
    text,
  );
}

/** What cannot be read as YAML at all, with its place; found without asking the server. */
export function syntaxMarks(text: string): Mark[] {
  const lines = new LineCounter();
  return documentsOf(text, lines).flatMap(({ errors }) =>
    errors.map(({ pos: [at], message }) => {
      const { line, col } = lines.linePos(at);
      return { line, column: col, message: message.split(/ at line \d+/)[0] ?? message };
    }),
  );
}

/** The line a fault of the server is about: `[1].spec.replicas`, `spec.containers[0].image`, or its nearest parent. */
export function markOf(text: string, field: string, message: string): Mark {
  const lines = new LineCounter();
  const { index, path } = readField(field);
  const given = documentsOf(text, lines).filter(({ contents }) => contents !== null);
  const document = given[index];
  for (let length = path.length; document && length > 0; length -= 1) {
    const parent = document.getIn(path.slice(0, length - 1), true) ?? document.contents;
    const last = path[length - 1];
    const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && key.value === last) : undefined;
    const node = pair?.key ?? document.getIn(path.slice(0, length), true);
    const at = rangeStart(node);
    if (at !== null) {
      const { line, col } = lines.linePos(at);
      return { line, column: col, message: `${field} ${message}` };
    }
  }
  const { line } = lines.linePos(rangeStart(document?.contents) ?? 0);
  return { line, column: 1, message: `${field} ${message}` };
}

function readField(field: string): { index: number; path: Path } {
  const [, digits, rest = ''] = /^(?:\[(\d+)\]\.?)?(.*)$/.exec(field) ?? [];
  const path = [...rest.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, number, key]) => (number ? Number(number) : (key ?? '')));
  return { index: Number(digits ?? 0), path };
}

function documentsOf(text: string, lineCounter = new LineCounter()): Document[] {
  return [...parseAllDocuments(text, { lineCounter })] as Document[];
}

/** Every template of pods in the document, wherever its kind keeps them. */
function rolesOf(document: Document): RoleField[] {
  const found: RoleField[] = [];
  const walk = (value: unknown, path: Path): void => {
    if (Array.isArray(value)) value.forEach((each, i) => walk(each, [...path, i]));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    if (Array.isArray(below(value, ['spec', 'containers'])) && path.at(-1) === 'template') {
      found.push(role(document, path));
      return;
    }
    Object.entries(value).forEach(([key, each]) => walk(each, [...path, key]));
  };
  walk(document.toJS({ maxAliasCount: 100 }), []);
  return found;
}

function role(document: Document, template: Path): RoleField {
  const owner = template.slice(0, -1);
  const container = [...template, 'spec', 'containers', 0];
  const amount = (name: string) =>
    ['limits', 'requests'].map((part) => textAt(document, [...container, 'resources', part, name])).find(Boolean) ?? '';
  const counted = ['replicas', 'parallelism'].map((key) => [...owner, key]).find((path) => document.hasIn(path));
  return {
    name: nameOf(document, owner),
    replicas: counted ? { path: counted, value: Number(document.getIn(counted)) } : null,
    container,
    image: textAt(document, [...container, 'image']),
    gpus: Number(amount(GPU) || 0),
    cpu: amount('cpu'),
    memory: amount('memory'),
  };
}

/** The name of the list's entry it is in, as of a worker group; else the key over it, as "Master". */
function nameOf(document: Document, owner: Path): string {
  const entry = owner.findLastIndex((key) => typeof key === 'number');
  const named = entry < 0 ? '' : ['name', 'groupName'].map((key) => textAt(document, [...owner.slice(0, entry + 1), key])).join('');
  const key = owner.findLast((each) => typeof each === 'string' && each !== 'spec' && each !== 'template');
  return named || String(key ?? textAt(document, ['kind']));
}

function textAt(document: Document, path: Path): string {
  const value = document.getIn(path);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function below(from: unknown, path: string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined),
    from,
  );
}

function rangeStart(node: unknown): number | null {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : null;
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : null;
}
