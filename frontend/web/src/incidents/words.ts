/** The title of an incident and the sentence of each of its steps, in the reader's language. Pure. */
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

/** Only an outage has a reason: its cluster is Ready again. Other causes are over when nothing more follows. */
export function stepWords({ what, cluster, attempt }: Step, { reason }: Incident, t: Text): string {
  if (what === 'CauseOver' && !reason) return t('incident.step.quiet');
  return t(`incident.step.${what}`, { cluster, attempt });
}

/** How long its cause lasted, or has lasted so far. */
export function lasted({ began_at: began, over_at: over }: Incident, nowMs: number, language: string): string {
  return formatDuration(((over ? Date.parse(over) : nowMs) - Date.parse(began)) / 1000, language);
}

/** "in 2m 10s", or how late it is. */
export function until(at: string, nowMs: number, language: string, t: Text): string {
  const left = (Date.parse(at) - nowMs) / 1000;
  return left > 0 ? t('incident.in', { time: formatDuration(left, language) }) : t('incident.due');
}
