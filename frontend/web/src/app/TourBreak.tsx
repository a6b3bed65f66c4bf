/** The last step of the tour: a simulated cluster falls silent at the press of a button, and its jobs are followed to where they go. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import { useMay } from '../api/me.ts';
import type { Cluster, Job, Page } from '../api/types.ts';
import { isReachable } from '../fleet/totals.ts';
import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import classes from './Tour.module.css';

const LOOK_MS = 3_000;

/** Kept while the page lives: the reader walks about meanwhile. */
let broken: { cluster: string; jobs: string[] } | null = null;

export function TourBreak({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation(['deferred', 'translation']);
  const client = useQueryClient();
  const may = useMay('cordon');
  const [followed, setFollowed] = useState(broken);
  const path = `clusters/${encodeURIComponent(followed?.cluster ?? cluster.name)}`;
  const again = () => void refetch(client, 'clusters');
  const silence = useMutation({
    mutationFn: async () => {
      const there = await api.get<Page<Job>>('jobs/', { query: { cluster: cluster.name, state: 'Running', page_size: 100 } });
      await api.post(`${path}/silence/`);
      return there.results.map(({ id }) => id);
    },
    onSuccess: (jobs) => {
      broken = { cluster: cluster.name, jobs };
      setFollowed(broken);
      again();
    },
  });
  const revive = useMutation({ mutationFn: () => api.post(`${path}/revive/`), onSuccess: again });
  const name = followed?.cluster ?? cluster.name;
  return (
    <div className={classes['break']}>
      {!followed && (
        <ActionButton
          size="compact-sm"
          color="red"
          obstacle={!cluster.simulated ? t('tour.kill.real') : may ? '' : t('deferred:help.needs', { role: 'fleet-admin' })}
          loading={silence.isPending}
          onClick={() => silence.mutate()}
        >
          {t('tour.kill.break', { name })}
        </ActionButton>
      )}
      {followed && <Followed cluster={followed.cluster} jobs={followed.jobs} />}
      {followed && (
        <ActionButton size="compact-sm" variant="default" obstacle="" loading={revive.isPending} onClick={() => revive.mutate()}>
          {t(revive.isSuccess ? 'tour.kill.revived' : 'translation:helpAction.ReviveCluster', { name })}
        </ActionButton>
      )}
      <Refusal error={silence.error ?? revive.error} />
    </div>
  );
}

/** First the silence, then the grace, then where each job runs again. */
function Followed({ cluster, jobs }: { cluster: string; jobs: string[] }) {
  const { t } = useTranslation(['deferred', 'translation']);
  const { data } = useQuery({
    queryKey: ['jobs', 'tour', jobs],
    queryFn: () => Promise.all(jobs.slice(0, 8).map((id) => api.get<Job>(`jobs/${id}/`))),
    refetchInterval: LOOK_MS,
  });
  const there = useQuery({
    queryKey: ['clusters', 'tour', cluster],
    queryFn: () => api.get<Cluster>(`clusters/${encodeURIComponent(cluster)}/`),
    refetchInterval: LOOK_MS,
  });
  const moved = data?.filter((job) => job.cluster !== null && job.cluster !== cluster && job.state === 'Running') ?? [];
  const leaving = data?.filter((job) => job.state === 'Moving').length ?? 0;
  const silent = there.data && !isReachable(there.data);
  return (
    <ol className={classes['story']} aria-live="polite">
      <li>{t(silent ? 'tour.kill.isSilent' : 'tour.kill.isBroken', { name: cluster, count: jobs.length })}</li>
      {leaving > 0 && <li>{t('tour.kill.leaving', { count: leaving })}</li>}
      {moved.map((job) => (
        <li key={job.id}>
          <Link to={`/jobs/${job.id}`}>{t('tour.kill.moved', { job: `${job.namespace}/${job.name}`, cluster: job.cluster })}</Link>
        </li>
      ))}
    </ol>
  );
}
