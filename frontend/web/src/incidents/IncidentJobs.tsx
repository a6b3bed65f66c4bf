/** The jobs of an incident: those it stopped with what became of each, and those that are still on its cluster. */
import { useTranslation } from 'react-i18next';

import type { IncidentStory, JobState } from '../api/types.ts';
import { reasonWords } from '../fleet/words.ts';
import { JobBadge } from '../jobs/JobBadge.tsx';
import { Link } from '../scope/Link.tsx';
import { useNow } from '../ui/clock.ts';
import { type Column, DataTable } from '../ui/DataTable.tsx';
import { formatDuration } from '../ui/duration.ts';
import { nameOf, until } from './words.ts';

type Affected = IncidentStory['affected'][number];
type Staying = IncidentStory['staying'][number];

const toJob = ({ job }: Affected | Staying) => <Link to={`/jobs/${job.id}`}>{nameOf(job)}</Link>;

export function AffectedTable({ story }: { story: IncidentStory }) {
  const { t, i18n } = useTranslation('deferred');
  const columns: Column<Affected>[] = [
    { id: 'job', header: t('incident.job'), cell: toJob },
    { id: 'gpus', header: t('incident.gpus'), align: 'end', cell: ({ gpus }) => gpus },
    { id: 'attempt', header: t('incident.attempt'), align: 'end', cell: ({ attempt }) => attempt },
    { id: 'ran', header: t('incident.ran'), align: 'end', cell: ({ ran_s: s }) => formatDuration(s, i18n.language) },
    { id: 'stopped', header: t('incident.stopped'), align: 'end', cell: ({ stopped_s: s }) => formatDuration(s, i18n.language) },
    { id: 'saved', header: t('incident.saved'), align: 'end', cell: ({ saved_step: step }) => step ?? '–' },
    { id: 'now', header: t('incident.now'), cell: (each) => <Now each={each} /> },
  ];
  return <DataTable caption={t('incident.affected')} columns={columns} rows={story.affected} rowKey={({ job, attempt }) => `${job.id} ${String(attempt)}`} />;
}

function Now({ each }: { each: Affected }) {
  const { t, i18n } = useTranslation();
  const state = each.state as JobState;
  const why = each.reason ? reasonWords(each.reason, { kind: each.kind, namespace: each.job.namespace, cluster: each.cluster }, { t, language: i18n.language }) : each.next_cluster;
  return (
    <>
      <JobBadge state={state} /> <span className="cv-soft">{why}</span>
    </>
  );
}

export function StayingTable({ story }: { story: IncidentStory }) {
  const { t, i18n } = useTranslation('deferred');
  const now = useNow(1_000);
  const columns: Column<Staying>[] = [
    { id: 'job', header: t('incident.job'), cell: toJob },
    { id: 'gpus', header: t('incident.gpus'), align: 'end', cell: ({ gpus }) => gpus },
    {
      id: 'leaves',
      header: t('incident.leaves'),
      cell: ({ leaves_at: at }) => (at ? until(at, now, i18n.language, t) : t('incident.staysOn')),
    },
  ];
  return <DataTable caption={t('incident.staying')} columns={columns} rows={story.staying} rowKey={({ job }) => job.id} />;
}
