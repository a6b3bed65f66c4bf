/** Every move as one story: what went wrong, what was waited for, where the job went, and that it runs again. */
import { Skeleton } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { Shuffle } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { JobEvent, Page } from '../api/types.ts';
import { commandsOfEvents } from '../fleet/commands.ts';
import { EventText } from '../fleet/EventText.tsx';
import { Link } from '../scope/Link.tsx';
import type { Scope } from '../scope/scope.ts';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './FailoversPage.module.css';

const STORIES = 20;

const movedQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ['events', 'moved', scope],
    queryFn: ({ signal }) => api.get<Page<JobEvent>>('events/', { query: { ...scope, reason: 'Moving', page_size: 100 }, signal }),
    refetchInterval: 30_000,
  });

const storyQuery = (uid: string) =>
  queryOptions({
    queryKey: ['events', 'story', uid],
    queryFn: ({ signal }) => api.get<Page<JobEvent>>('events/', { query: { uid, ordering: 'first_at', page_size: 100 }, signal }),
    refetchInterval: 30_000,
  });

export default function FailoversPage() {
  const { t } = useTranslation();
  const scope = useScope();
  const { data, error, refetch } = useQuery(movedQuery(scope));
  const moved = data?.results ?? [];
  const jobs = moved.filter(({ regarding }, i) => moved.findIndex((each) => each.regarding.uid === regarding.uid) === i);
  return (
    <>
      <PageHeader title={t('failovers.title')} note={data && t('failovers.count', { count: jobs.length })}>
        <CopyAs commands={commandsOfEvents(scope, { reason: 'Moving' })} />
      </PageHeader>
      {!data && error && (
        <Panel>
          <Failed error={error} onRetry={() => void refetch()} />
        </Panel>
      )}
      {!data && !error && <Skeleton height={180} radius={8} />}
      {data && jobs.length === 0 && (
        <Panel>
          <Empty title={t('failovers.none')} icon={Shuffle}>
            {t('failovers.noneBody')}
          </Empty>
        </Panel>
      )}
      <div className={classes['stories']}>
        {jobs.slice(0, STORIES).map((event) => (
          <Story key={event.regarding.uid} event={event} />
        ))}
      </div>
    </>
  );
}

function Story({ event: { regarding } }: { event: JobEvent }) {
  const { data } = useQuery(storyQuery(regarding.uid));
  const name = `${regarding.namespace}/${regarding.name}`;
  return (
    <article className={classes['story']} aria-label={name}>
      <h2>
        <Link to={`/jobs/${regarding.uid}`}>{name}</Link>
      </h2>
      {!data && <Skeleton height={90} />}
      <ol>
        {data?.results.map((event) => (
          <li key={event.id} data-type={event.type}>
            <Age since={event.last_at} ago />
            <strong>{event.reason}</strong>
            <EventText event={event} />
          </li>
        ))}
      </ol>
    </article>
  );
}
