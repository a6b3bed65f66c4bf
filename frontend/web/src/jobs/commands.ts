/** The same job, list or action on a command line. */
import type { JobDetail } from '../api/types.ts';
import { type Commands, curl, quoted } from '../ui/CopyAs.tsx';
import { type JobFilters, searchOf } from './filters.ts';

export function commandsOf({ id, kind, namespace, name }: JobDetail): Commands {
  const where = `-n ${quoted(namespace)}`;
  return {
    kubectl: `kubectl --kubeconfig .convoy/kubeconfig describe ${kind.toLowerCase()} ${quoted(name)} ${where}`,
    cli: `convoy describe ${quoted(name)} ${where}`,
    curl: curl(`jobs/${id}/`),
  };
}

export function commandsOfList(filters: JobFilters): Commands {
  const scope = filters.namespace ? `-n ${quoted(filters.namespace)}` : '-A';
  const chosen = filters.labels ? ` -l ${quoted(filters.labels)}` : '';
  const kind = filters.kind.toLowerCase();
  return {
    ...(kind ? { kubectl: `kubectl --kubeconfig .convoy/kubeconfig get ${quoted(kind)} ${scope}${chosen}` } : {}),
    cli: `convoy get jobs ${scope}${chosen}`,
    curl: curl(`jobs/?${searchOf(filters)}`),
  };
}
