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

export async function loadExample(name: string): Promise<string> {
  return (await loaders.get(name)?.()) ?? '';
}
