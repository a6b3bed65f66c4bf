import { readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { markOf, readForms, syntaxMarks, withField, withValue } from './manifest.ts';

const example = (name: string) => readFileSync(`../../docs/examples/${name}.yaml`, 'utf8');
const FILE = `# kept\nkind: ConfigMap\nmetadata: {name: settings}\n---\n${example('trainingjob')}`;

test.each([
  ['mpijob', ['Launcher', 'Worker'], [1, 2]],
  ['jobset', ['driver', 'workers'], [undefined, 2]],
  ['rayjob', ['headGroupSpec', undefined], undefined],
])('finds the roles of %s', (name, names, replicas) => {
  const [form] = readForms(example(name));
  if (names[1] !== undefined) expect(form!.roles.map((role) => role.name)).toEqual(names);
  else expect(form!.roles[0]!.name).toBe(names[0]);
  if (replicas) expect(form!.roles.map((role) => role.replicas?.value)).toEqual(replicas);
});

test('changes one value in place and leaves the rest as it was', () => {
  const [form] = readForms(FILE);
  const worker = form!.roles.find(({ name }) => name === 'worker')!;
  const changed = withField(FILE, form!, worker, 'gpus', 4);
  expect(changed).toContain('# kept');
  expect(changed).toContain('nvidia.com/gpu: 4');
  expect(readForms(changed)[0]!.roles.find(({ name }) => name === 'worker')!.gpus).toBe(4);
});

test('an empty value takes the key away', () => {
  const [form] = readForms(FILE);
  const without = withField(FILE, form!, form!.roles[0]!, 'image', '');
  expect(readForms(without)[0]!.roles[0]!.image).toBe('');
  expect(readForms(withValue(FILE, 1, ['metadata', 'namespace'], 'vision'))[0]!.namespace).toBe('vision');
});

test('changes an amount wherever it is written', () => {
  const text = 'spec: {template: {spec: {containers: [{resources: {limits: {cpu: 1}, requests: {cpu: 1, memory: 1Gi}}}]}}}\n';
  const [form] = readForms(text);
  const changed = withField(withField(text, form!, form!.roles[0]!, 'cpu', '2'), form!, form!.roles[0]!, 'memory', '2Gi');
  expect(changed.replaceAll('"', '')).toContain('limits: { cpu: 2 }, requests: { cpu: 2, memory: 2Gi }');
});

test('says where the YAML breaks', () => {
  const [mark] = syntaxMarks('kind: Job\nmetadata: {name: a\nspec: 1\n');
  expect(mark!.line).toBeGreaterThan(1);
});

test('finds the line of a fault, or of its nearest parent', () => {
  const line = (field: string) => FILE.split('\n')[markOf(FILE, field, 'is wrong').line - 1]!.trim();
  expect(line('[1].spec.etReplicaSpecs.worker.replicas')).toBe('replicas: 2');
  expect(line('[1].spec.etReplicaSpecs.worker.template.spec.containers[0].image')).toBe('image: example.com/bert');
  expect(line('[1].metadata.namespace')).toBe('metadata:');
  expect(line('[0].metadata.name')).toBe('metadata: {name: settings}');
});

test('reads what is half typed', () => {
  expect(readForms('kind: [')).toEqual([]);
  expect(readForms('')).toEqual([]);
  expect(markOf('', 'metadata', 'is missing').line).toBe(1);
});
