/** One incident as a story: the signal, who had to leave, where they run again, what was lost, and who still waits. */
import { Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';

import type { IncidentStory } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { useNow } from '../ui/clock.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { AffectedTable, StayingTable } from './IncidentJobs.tsx';
import { commandsOfIncident, incidentQuery, pathOf } from './queries.ts';
import { StageBadge } from './StageBadge.tsx';
import { lasted, nameOf, stepWords, titleOf, until } from './words.ts';
import classes from './IncidentPage.module.css';

export default function IncidentPage() {
  const { t } = useTranslation('deferred');
  const { id = '' } = useParams();
  const { data, error, refetch } = useQuery(incidentQuery(id));
  if (!data) return <Panel>{error ? <Failed error={error} onRetry={() => void refetch()} /> : <Skeleton height={260} radius={8} />}</Panel>;
  return (
    <div className={classes['page']}>
      <PageHeader title={titleOf(data, t)} note={<StageBadge stage={data.stage} />}>
        <Button
          component="a"
          href={`/api/v1/${pathOf(id)}postmortem/`}
          download={`incident-${id}.md`}
          size="xs"
          variant="default"
          leftSection={<Download size={14} aria-hidden />}
        >
          {t('incident.export')}
        </Button>
        <CopyAs commands={commandsOfIncident(id)} />
      </PageHeader>
      <Summary story={data} />
      {data.staying.length > 0 && (
        <Panel title={t('incident.staying')} flush>
          <StayingTable story={data} />
        </Panel>
      )}
      {data.affected.length > 0 && (
        <Panel title={t('incident.affected')} note={data.is_cut ? t('incident.cut') : undefined} flush>
          <AffectedTable story={data} />
        </Panel>
      )}
      <Panel title={t('incident.timeline')}>
        <Timeline story={data} />
      </Panel>
    </div>
  );
}

function Summary({ story }: { story: IncidentStory }) {
  const { t, i18n } = useTranslation('deferred');
  const now = useNow(1_000);
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 });
  const facts: [string, string][] = [
    [t('incident.began'), new Date(story.began_at).toLocaleString(i18n.language)],
    [t('incident.lasted'), lasted(story, now, i18n.language)],
    [t('incident.jobs'), number.format(story.jobs + story.other_jobs)],
    [t('incident.waiting'), number.format(story.waiting)],
    [t('incident.stoppedMinutes'), number.format(story.gpu_minutes_stopped)],
    [t('incident.repeatedMinutes'), number.format(story.gpu_minutes_repeated)],
  ];
  return (
    <Panel title={t('incident.summary')}>
      <dl className={classes['facts']}>
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd className="cv-numbers">{value}</dd>
          </div>
        ))}
      </dl>
      {story.other_jobs > 0 && <p className="cv-soft">{t('incident.others', { count: story.other_jobs })}</p>}
      <div className="cv-soft">
        <ServerText text={story.message} />
      </div>
      {story.cluster && <Link to={`/fleet/${encodeURIComponent(story.cluster)}`}>{t('incident.openCluster', { name: story.cluster })}</Link>}
    </Panel>
  );
}

function Timeline({ story }: { story: IncidentStory }) {
  const { t, i18n } = useTranslation('deferred');
  const now = useNow(1_000);
  return (
    <ol className={classes['steps']}>
      {story.steps.map((step) => (
        <li key={`${step.at} ${step.what} ${step.job?.id ?? ''} ${step.attempt ?? ''}`} data-what={step.what}>
          <time dateTime={step.at}>{new Date(step.at).toLocaleTimeString(i18n.language)}</time>
          {step.what === 'LeavesAt' ? <span>{until(step.at, now, i18n.language, t)}</span> : <Age since={step.at} ago />}
          <span>
            {step.job && <Link to={`/jobs/${step.job.id}`}>{nameOf(step.job)}</Link>} {stepWords(step, story, t)}
          </span>
        </li>
      ))}
    </ol>
  );
}
