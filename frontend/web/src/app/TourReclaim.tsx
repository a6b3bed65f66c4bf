/** A step of the tour: a node of a simulated cluster is reclaimed under an elastic job, which is followed as it saves, shrinks and grows. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import type { Job, JobDetail, Page } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import type { Notice } from '../jobs/types.ts';
import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { nodePath, type Reclaimed, targetOf, workers } from './reclaiming.ts';
import classes from './Tour.module.css';

const LOOK_MS = 2_000;
const NOTICE_S = 30;

/** Kept while the page lives: the reader walks about meanwhile. */
let kept: Reclaimed | null = null;
/** The fewest workers that it was seen with since. */
let fewest = Infinity;

export function TourReclaim() {
  const { t } = useTranslation(['deferred', 'translation']);
  const mayReclaim = useMay('cordon');
  const [followed, setFollowed] = useState(kept);
  const { data: job, isPending } = useElasticJob();
  const submit = useMutation({
    mutationFn: async () => {
      const { default: text } = await import('../../../../deploy/demo/elastic.yaml?raw');
      const former = await api.get<Page<Job>>('jobs/', { query: { namespace: 'default', name: 'elastic', page_size: 1 } });
      const name = former.count === 0 ? 'elastic' : `elastic-${Date.now().toString(36)}`;
      return api.postYaml('apply/', text.replace('name: elastic', `name: ${name}`));
    },
  });
  const reclaim = useMutation({
    mutationFn: async (target: Job) => {
      const started = await targetOf(target);
      if (started) await api.post(nodePath(started), { notice_s: NOTICE_S });
      return started;
    },
    onSuccess: (started) => {
      if (started) [kept, fewest] = [started, Infinity];
      setFollowed(started);
    },
  });
  const giveBack = useMutation({ mutationFn: (target: Reclaimed) => api.delete(nodePath(target)) });
  const obstacle = mayReclaim ? '' : t('deferred:help.needs', { role: 'fleet-admin' });
  return (
    <div className={classes['break']}>
      {!followed && job && (
        <ActionButton size="compact-sm" color="red" obstacle={obstacle} loading={reclaim.isPending} onClick={() => reclaim.mutate(job)}>
          {t('tour.reclaim.act', { job: `${job.namespace}/${job.name}` })}
        </ActionButton>
      )}
      {!followed && !job && !isPending && (
        <ActionButton size="compact-sm" obstacle="" loading={submit.isPending || submit.isSuccess} onClick={() => submit.mutate()}>
          {t('tour.reclaim.submit')}
        </ActionButton>
      )}
      {followed && <Followed reclaimed={followed} isBack={giveBack.isSuccess} />}
      {followed && (
        <ActionButton size="compact-sm" variant="default" obstacle={obstacle} loading={giveBack.isPending} onClick={() => giveBack.mutate(followed)}>
          {t('tour.reclaim.back', { node: followed.node })}
        </ActionButton>
      )}
      <div role="status">
        {!followed && job && reclaim.data === null && <NoPod job={job} />}
      </div>
      <Refusal error={submit.error ?? reclaim.error ?? giveBack.error} />
    </div>
  );
}

function NoPod({ job: { id, namespace, name } }: { job: Job }) {
  const { t } = useTranslation('deferred');
  return (
    <p>
      {t('tour.reclaim.noPod', { job: `${namespace}/${name}` })} <Link to={`/jobs/${id}`}>{t('tour.reclaim.seePods')}</Link>
    </p>
  );
}

/** The latest that runs on a simulated cluster and may have fewer workers: never one on a cluster that is real. */
function useElasticJob() {
  const clusters = useQuery(clustersQuery);
  const jobs = useQuery({
    queryKey: ['jobs', 'tour', 'elastic'],
    queryFn: () => api.get<Page<Job>>('jobs/', { query: { state: 'Running', ordering: '-created_at', page_size: 100 } }),
    refetchInterval: LOOK_MS,
  });
  const simulated = new Set(clusters.data?.results.filter((each) => each.simulated).map(({ name }) => name));
  const data = jobs.data?.results.find((job) => {
    const size = workers(job);
    return size && size.replicas > size.min && job.cluster !== null && simulated.has(job.cluster);
  });
  return { data, isPending: jobs.isPending || clusters.isPending };
}

/** First the notice, then what the worker saved, then fewer workers, then as many as before. */
function Followed({ reclaimed, isBack }: { reclaimed: Reclaimed; isBack: boolean }) {
  const { t } = useTranslation(['deferred', 'translation']);
  const { data } = useQuery({
    queryKey: ['jobs', 'tour', 'reclaimed', reclaimed],
    queryFn: async () => {
      const job = await api.get<JobDetail>(`jobs/${reclaimed.job}/`);
      const notices = await api.get<Notice[]>(`jobs/${reclaimed.job}/notices/`);
      fewest = Math.min(fewest, workers(job)?.replicas ?? Infinity);
      return { job, notices, hasShrunk: fewest < reclaimed.size };
    },
    refetchInterval: LOOK_MS,
  });
  const heard = data?.notices.filter(({ node }) => node === reclaimed.node) ?? [];
  const size = data && workers(data.job)?.replicas;
  const hasShrunk = data?.hasShrunk ?? false;
  const name = data ? `${data.job.namespace}/${data.job.name}` : '';
  return (
    <ol className={classes['story']} aria-live="polite">
      <li>{t('tour.reclaim.isReclaimed', { ...reclaimed, seconds: NOTICE_S })}</li>
      {heard.length > 0 && <li>{t('tour.reclaim.noticed', { pods: heard.map(({ pod }) => pod).join(', ') })}</li>}
      {heard
        .filter(({ left_at }) => left_at !== null)
        .map(({ pod, saved_step: step }) => (
          <li key={pod}>{t(step === null ? 'tour.reclaim.left' : 'tour.reclaim.saved', { pod, step })}</li>
        ))}
      {hasShrunk && (
        <li>
          <Link to={`/jobs/${reclaimed.job}`}>{t('tour.reclaim.shrunk', { name, before: reclaimed.size })}</Link>
        </li>
      )}
      {isBack && !(hasShrunk && size === reclaimed.size) && <li>{t('tour.reclaim.isBack', { ...reclaimed })}</li>}
      {hasShrunk && size === reclaimed.size && <li>{t('tour.reclaim.grown', { name, size })}</li>}
    </ol>
  );
}
