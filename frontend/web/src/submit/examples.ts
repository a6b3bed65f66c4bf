/** What a file can begin with: an example, or the manifest of a job that is there. */
import { stringify } from 'yaml';

import { api } from '../api/client.ts';
import type { Job, JobDetail, Page } from '../api/types.ts';

/** The jobs of docs/examples and of the demo, each fetched when it is chosen. */
const files = import.meta.glob<string>(
  ['../../../../docs/examples/*.yaml', '../../../../deploy/demo/pytorchjob.yaml'],
  { query: '?raw', import: 'default' },
);

const loaders = new Map(
  Object.entries(files).map(([path, load]) => [path.slice(path.lastIndexOf('/') + 1, -'.yaml'.length), load]),
);

export const FIRST_EXAMPLE = 'pytorchjob';

export const exampleNames = [...loaders.keys()].sort();

/** The example, under a name that is free: a job that is there already cannot be submitted once more. */
export async function loadExample(name: string): Promise<string> {
  const text = (await loaders.get(name)?.()) ?? '';
  const [line, indent, called] = /^( +)name: ([a-z0-9-]+)$/m.exec(text) ?? [];
  if (!line || !called) return text;
  return text.replace(line, `${indent}name: ${await freeName(called)}`);
}

const TRIES = 20;

async function freeName(name: string, namespace = 'default'): Promise<string> {
  for (let number = 1; number <= TRIES; number += 1) {
    const tried = number === 1 ? name : `${name}-${number}`;
    const found = await api
      .get<Page<Job>>('jobs/', { query: { namespace, name: tried, page_size: 1 } })
      .catch(() => ({ count: 0 }));
    if (found.count === 0) return tried;
  }
  return `${name}-${Date.now().toString(36)}`;
}

/** The manifest of a job that is there, to be changed and submitted again; as a clone under a name that is free. */
export async function loadJob(id: string, asClone: boolean): Promise<string> {
  const { manifest, name, namespace } = await api.get<JobDetail>(`jobs/${id}/`);
  const metadata = manifest['metadata'] as Record<string, unknown>;
  const named = asClone ? { ...manifest, metadata: { ...metadata, name: await freeName(clonedName(name), namespace) } } : manifest;
  return stringify(named, { lineWidth: 0 });
}

/** Not longer than a name may be whose pods have names derived from it. */
function clonedName(name: string): string {
  return `${name.slice(0, Math.max(name.length - COPY.length, 40)).replace(/[-.]+$/, '')}${COPY}`;
}

const COPY = '-copy';
