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

/** A policy that selects the jobs of one kind in one namespace: `NAMESPACE API/VERSION KIND`; empty for anything else. */
export function policyFor(asked: string): string {
  const [namespace, apiVersion, kind] = asked.split(' ');
  if (!namespace || !apiVersion || !kind) return '';
  return `# Lets the fleet place the ${kind} jobs of namespace ${namespace}, each whole on one cluster.
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata:
  name: ${kind.toLowerCase()}
  namespace: ${namespace}
spec:
  propagateDeps: true
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      customSchedulingType: Gang
  resourceSelectors:
    - apiVersion: ${apiVersion}
      kind: ${kind}
`;
}
