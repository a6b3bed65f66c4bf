import { type Completion, CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { expect, test } from 'vitest';

import type { KnownKind, SchemaField, SchemaPlace } from '../api/types.ts';
import { suggestFrom, type Vocabulary } from './suggestions.ts';

const HEAD = 'apiVersion: batch/v1\nkind: Job\n';
const field = (name: string, type: SchemaField['type'] = 'string', required = false): SchemaField => ({
  name,
  type,
  description: required ? `What ${name} is.` : '',
  required,
});
const place = (fields: SchemaField[], choices: string[] = []): SchemaPlace => ({ type: 'object', description: '', fields, choices });
const PLACES: Record<string, SchemaPlace> = {
  spec: place([field('template', 'object', true), field('list', 'array'), field('policy'), field('count', 'integer')]),
  'spec/list/[]': place([field('name')], ['plain']),
  'spec/policy': place([], ['Always', 'Never']),
};
const kind = (api_version: string, name: string): KnownKind => ({
  api_version,
  kind: name,
  plural: `${name.toLowerCase()}s`,
  short_names: [],
  category: 'job',
  description: `A ${name}.`,
});
const asked: string[] = [];
const vocabulary: Vocabulary = {
  kinds: () => Promise.resolve([kind('batch/v1', 'Job'), kind('volcano/v1', 'Job'), kind('kubeflow/v1', 'PyTorchJob')]),
  place: (apiVersion, name, path) => {
    asked.push(`${apiVersion} ${name}`);
    return Promise.resolve(PLACES[path.join('/')] ?? place([]));
  },
};

interface Asked {
  explicit?: boolean;
  from?: Vocabulary;
}

async function suggested(text: string, { explicit = true, from = vocabulary }: Asked = {}): Promise<CompletionResult | null> {
  const pos = text.indexOf('|');
  const state = EditorState.create({ doc: text.replace('|', '') });
  return suggestFrom(from, 'required')(new CompletionContext(state, pos, explicit));
}

const labels = async (text: string, how?: Asked) => (await suggested(text, how))?.options.map(({ label }) => label) ?? null;

/** The text once the first suggestion is taken. */
async function taken(text: string): Promise<string> {
  const found = await suggested(text);
  const [first] = found!.options as [Completion];
  const view = new EditorView({ state: EditorState.create({ doc: text.replace('|', '') }) });
  const { apply, label } = first;
  if (typeof apply === 'function') apply(view, first, found!.from, found!.to!);
  else view.dispatch({ changes: { from: found!.from, to: found!.to!, insert: label } });
  return view.state.doc.toString();
}

test('offers the fields that are not written, with type, whether required, and what they are', async () => {
  const found = await suggested(`${HEAD}spec:\n  policy: x\n  te|`);
  expect(found!.options.map(({ label }) => label)).toEqual(['template', 'list', 'count']);
  expect(found!.options[0]).toMatchObject({ detail: 'object · required', info: 'What template is.', boost: 1 });
  expect(found!.options[2]).toMatchObject({ detail: 'integer', boost: 0 });
  expect(asked.at(-1)).toBe('batch/v1 Job');
});

test('offers values where a value stands, and both behind a dash', async () => {
  expect(await labels(`${HEAD}spec:\n  policy: |`)).toEqual(['Always', 'Never']);
  expect(await labels(`${HEAD}spec:\n  list:\n    - |`)).toEqual(['name', 'plain']);
  expect(await labels(`${HEAD}spec:\n  count: |`)).toBeNull();
});

test('opens by itself where something is typed, not on blank lines', async () => {
  expect(await labels(`${HEAD}spec:\n  |`, { explicit: false })).toBeNull();
  expect(await labels(`${HEAD}spec:\n  |`)).toHaveLength(4);
  expect(await labels(`${HEAD}spec:\n  t|`, { explicit: false })).toHaveLength(4);
  expect(await labels(`${HEAD}spec:\n  policy: |`, { explicit: false })).toHaveLength(2);
});

test('offers kinds and versions that go together, before anything else', async () => {
  expect(await labels('k|')).toEqual(['apiVersion', 'kind']);
  expect(await labels('kind: Job\na|')).toEqual(['apiVersion']);
  expect(await labels('kind: |')).toEqual(['Job', 'Job', 'PyTorchJob']);
  expect(await labels('apiVersion: kubeflow/v1\nkind: |')).toEqual(['PyTorchJob']);
  expect(await labels('apiVersion: |')).toEqual(['batch/v1', 'volcano/v1', 'kubeflow/v1']);
  expect(await labels('apiVersion: |\nkind: PyTorchJob')).toEqual(['kubeflow/v1']);
});

test('offers nothing below a kind nobody knows, nor when the server is away', async () => {
  expect(await labels('apiVersion: v9\nkind: Car\nspec:\n  |')).toBeNull();
  const away = () => Promise.reject(new Error('away'));
  expect(await labels(`${HEAD}spec:\n  |`, { from: { kinds: away, place: away } })).toBeNull();
  expect(await labels(`${HEAD}# spec|`)).toBeNull();
});

test.each([
  ['an object', [field('x', 'object')], 'x:\n    '],
  ['a list', [field('x', 'array')], 'x:\n    - '],
  ['a value', [field('x', 'boolean')], 'x: '],
  ['anything', [field('x', 'any')], 'x: '],
])('begins %s as it is written', async (_, fields, text) => {
  PLACES['spec'] = place(fields);
  expect(await taken(`${HEAD}spec:\n  |`)).toBe(`${HEAD}spec:\n  ${text}`);
});

test('takes the place of the whole word, and leaves a value that is there', async () => {
  PLACES['spec'] = place([field('replicas', 'integer')]);
  expect(await taken(`${HEAD}spec:\n  re|ps: 3\n  other: 1\n`)).toBe(`${HEAD}spec:\n  replicas: 3\n  other: 1\n`);
  expect(await taken(`${HEAD}spec:\n  policy: Ne|xt\n`)).toBe(`${HEAD}spec:\n  policy: Always\n`);
});

test('indents below the key of an entry', async () => {
  PLACES['spec/list/[]'] = place([field('env', 'array')]);
  expect(await taken(`${HEAD}spec:\n  list:\n    - e|`)).toBe(`${HEAD}spec:\n  list:\n    - env:\n        - `);
});
