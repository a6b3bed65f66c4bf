/** What an incident is called and what each step of it says, in the reader's language. Pure. */
import type { TFunction } from 'i18next';

import type { Incident, IncidentStory } from '../api/types.ts';
import { formatDuration } from '../ui/duration.ts';

type Text = TFunction<'deferred'>;
type Step = IncidentStory['steps'][number];

export const nameOf = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`;

export function titleOf(incident: Incident, t: Text): string {
  const job = incident.job ? nameOf(incident.job) : t('incident.aJob');
  return t(`incident.kind.${incident.kind}`, { cluster: incident.cluster, job, nodes: incident.nodes.join(', ') });
}

/** "n1 and 2 more": an incident may have lost a whole rack. */
export function nodesOf({ nodes }: Incident, t: Text): string {
  const [first = '', ...more] = nodes;
  return more.length > 0 ? t('incident.moreNodes', { first, count: more.length }) : first;
}

export function stepWords({ what, cluster, attempt }: Step, { kind }: Incident, t: Text): string {
  if (what === 'CauseOver' && !isOutage(kind)) return t('incident.step.quiet');
  return t(`incident.step.${what}`, { cluster, attempt });
}

export const isOutage = (kind: Incident['kind']) =>
  kind === 'ClusterSilent' || kind === 'ClusterUnhealthy' || kind === 'CredentialsRefused' || kind === 'DisruptionSuspected';

/** How long its cause lasted, or has lasted so far. */
export function lasted({ began_at: began, over_at: over }: Incident, nowMs: number, language: string): string {
  return formatDuration(((over ? Date.parse(over) : nowMs) - Date.parse(began)) / 1000, language);
}

/** "in 2m 10s", or how late it is. */
export function until(at: string, nowMs: number, language: string, t: Text): string {
  const left = (Date.parse(at) - nowMs) / 1000;
  return left > 0 ? t('incident.in', { time: formatDuration(left, language) }) : t('incident.due');
}
