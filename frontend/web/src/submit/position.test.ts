import { expect, test } from 'vitest';

import { type Position, positionAt } from './position.ts';

/** The bar is the cursor. */
function at(text: string): Position | null {
  const offset = text.indexOf('|');
  return positionAt(text.slice(0, offset) + text.slice(offset + 1), offset);
}

const path = (text: string) => at(text)?.path.join('/') ?? null;

const JOB = `apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      ‹›
      template:
        spec:
          containers:
            - name: pytorch
              image: train
`;

test.each([
  ['a key of a mapping', 'spec:\n  re|', 'spec', 'key'],
  ['a blank line below a mapping', 'spec:\n  |', 'spec', 'key'],
  ['a blank line beside a mapping', 'spec:\n  a: 1\n|', '', 'key'],
  ['an empty file', '|', '', 'key'],
  ['a value', 'spec:\n  policy: Al|', 'spec/policy', 'value'],
  ['an empty value', 'spec:\n  policy: |', 'spec/policy', 'value'],
  ['an entry of a list', 'spec:\n  list:\n    - na|', 'spec/list/[]', 'entry'],
  ['an empty entry', 'spec:\n  list:\n    - |', 'spec/list/[]', 'entry'],
  ['a list right below its key', 'spec:\n  list:\n  - a: 1\n    b|', 'spec/list/[]', 'key'],
  ['behind such a list', 'spec:\n  list:\n  - a: 1\n  ot|', 'spec', 'key'],
  ['a value in an entry', 'list:\n  - a: 1\n    b: x|', 'list/[]/b', 'value'],
  ['a list in a list', 'list:\n  - - a|', 'list/[]/[]', 'entry'],
  ['a list in an entry', 'list:\n  - env:\n      - name: a\n        va|', 'list/[]/env/[]', 'key'],
  ['the next entry', 'list:\n  - env:\n      - name: a\n  - |', 'list/[]', 'entry'],
  ['quoted keys', '"a.b/c":\n  \'d e\':\n    x|', 'a.b/c/d e', 'key'],
  ['keys with dots and slashes', 'limits:\n  nvidia.com/gpu: |', 'limits/nvidia.com/gpu', 'value'],
  ['values with colons', 'a:\n  image: host:5000/x:1\n  b|', 'a', 'key'],
  ['comments between', 'spec:\n  # note: this\n# and: this\n  a:\n    b|', 'spec/a', 'key'],
  ['a comment behind a key', 'spec: # what it is\n  b|', 'spec', 'key'],
  ['Windows lines', 'spec:\r\n  a:\r\n    b|', 'spec/a', 'key'],
  ['behind a block of text', 'a:\n  script: |\n    kind: no\n\n    more\n  b'.replace('script: |', 'script: >-') + '|', 'a', 'key'],
  ['behind brackets over lines', 'a:\n  command: ["x",\n    "y: z"]\n  b|', 'a', 'key'],
  ['behind brackets that nobody closed', 'a:\n  command: ["x"\n  b|', 'a', 'key'],
  ['behind an apostrophe', "a:\n  note: it's\n  b|", 'a', 'key'],
  ['behind a line that is no YAML', 'spec:\n  a: b: c\n  ]]\n  b|', 'spec', 'key'],
])('finds %s', (_, text, expected, takes) => {
  expect(path(text)).toBe(expected);
  expect(at(text)?.takes).toBe(takes);
});

test.each([
  ['a comment', 'spec:\n  # re|'],
  ['behind a value', 'spec:\n  a: 1 # x|'],
  ['words in a value', 'spec:\n  note: two wo|'],
  ['a block of text', 'spec:\n  script: >\n    if|'],
  ['an empty line of a block of text', 'spec:\n  script: >\n    a\n    |\n    b'],
  ['a block of text in a list', 'args:\n  - >-\n    if|'],
  ['brackets', 'limits: {cpu: 1, m|'],
  ['brackets over lines', 'limits: {\n  cpu: 1,\n  m|\n}'],
  ['quotes', 'a: "b|'],
  ['quotes over lines', 'a: "b\n  c|"'],
  ['an alias', 'a: *b|'],
  ['tabs', 'spec:\n\tre|'],
  ['right behind a colon', 'spec:\n  a:|'],
  ['right behind a dash', 'spec:\n  -|'],
  ['a line between documents', '---|'],
  ['a key out of line with its siblings', 'spec:\n    a: 1\n  b|'],
])('offers nothing in %s', (_, text) => {
  expect(at(text)).toBeNull();
});

test('knows the keys that are there, above and below', () => {
  const found = at(JOB.replace('‹›', '|'));
  expect(found?.path).toEqual(['spec', 'pytorchReplicaSpecs', 'Worker']);
  expect(found?.present).toEqual(['replicas', 'template']);
});

test('knows the keys of one entry from those of the next', () => {
  expect(at('list:\n  - a: 1\n    b: 2\n  - c: 3\n    |\n    d: 4\n  - e: 5')?.present).toEqual(['c', 'd']);
  expect(at('list:\n  - |\n    d: 4\n  - e: 5')?.present).toEqual(['d']);
  expect(at('list:\n- a: 1\n|\nother: 2')?.present).toEqual(['list', 'other']);
});

test('does not count the word under the cursor', () => {
  expect(at('spec:\n  re|plicas: 1\n  other: 2')?.present).toEqual(['other']);
});

test('reads the kind of the document the cursor is in', () => {
  const text = `kind: ConfigMap\n---\n# first\n${JOB}---\napiVersion: 'batch/v1'\nkind: Job # plain\nspec:\n  ‹›\n`;
  expect(at(text.replace('‹›', '|'))).toMatchObject({ apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob' });
  const [first, second] = text.split('      ‹›\n');
  expect(at(`${first}${second}`.replace('‹›', '|'))).toMatchObject({ apiVersion: 'batch/v1', kind: 'Job', path: ['spec'] });
});

test('tells where the word begins', () => {
  expect(at('spec:\n  rep|')?.from).toBe('spec:\n  '.length);
  expect(at('spec:\n  a: Al|ways')?.from).toBe('spec:\n  a: '.length);
  expect(at('list:\n  - |')?.from).toBe('list:\n  - '.length);
});
