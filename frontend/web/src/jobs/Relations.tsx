/** How a job hangs together, from left to right: policy and queue, binding, the copies in their clusters, nodes, pods. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import type { JobDetail, Pod } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { jobPodsQuery } from './queries.ts';
import { type Copy, copiesOf } from './relations.ts';
import classes from './Relations.module.css';

/** Shown of one node; a table of all pods stands above. */
const PODS = 16;

export function Relations({ job }: { job: JobDetail }) {
  const { t } = useTranslation('deferred');
  const { data, error, refetch } = useQuery(jobPodsQuery(job.id));
  return (
    <Panel title={t('relations.title')}>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={80} aria-busy />}
      {data && <Graph job={job} pods={data.results} unlisted={data.count - data.results.length} />}
    </Panel>
  );
}

function Graph({ job, pods, unlisted }: { job: JobDetail; pods: readonly Pod[]; unlisted: number }) {
  const { t } = useTranslation('deferred');
  const copies = copiesOf(job, pods);
  const { policy, leaf, binding } = job;
  return (
    <>
      <ol className={classes['graph']}>
        <li>
          <Box kind={t('relations.policy')} isMissing={!policy}>
            {policy ? <Link to={`/jobs?${new URLSearchParams({ policy: policy.name, namespace: policy.namespace })}`}>{policy.name}</Link> : t('relations.noPolicy')}
          </Box>
          <Box kind={t('relations.queue')} isMissing={!leaf}>
            {leaf ? <Link to={`/jobs?${new URLSearchParams({ queue: leaf })}`}>{leaf}</Link> : t('relations.noQueue')}
          </Box>
        </li>
        <li>
          <Box kind={t('relations.binding')} isMissing={!binding?.cluster}>
            {binding?.cluster ? t('relations.bound', { attempt: binding.attempt, cluster: binding.cluster }) : t('relations.notBound')}
          </Box>
        </li>
        <li>
          {copies.length === 0 && (
            <Box kind={t('relations.copy')} isMissing>
              {t('relations.noCopy')}
            </Box>
          )}
          {copies.map((copy) => (
            <Branch key={`${copy.cluster} ${String(copy.attempt)}`} copy={copy} />
          ))}
        </li>
      </ol>
      {unlisted > 0 && <p className="cv-soft">{t('relations.more', { count: unlisted })}</p>}
    </>
  );
}

function Branch({ copy: { cluster, attempt, state, isOther, nodes } }: { copy: Copy }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <div className={classes['branch']}>
      <Box kind={t('deferred:relations.copy')} isMissing={isOther}>
        <Link to={`/fleet/${encodeURIComponent(cluster)}`}>{cluster}</Link>
        <span className="cv-soft">
          {t('job.attemptNumber', { number: attempt })} · {isOther ? t('deferred:relations.mayRun') : state}
        </span>
      </Box>
      <div className={classes['nodes']}>
        {nodes.map(({ name, pods }) => (
          <Box key={name} kind={t('cluster.node')} isMissing={name === ''}>
            {name || t('deferred:relations.noNode')}
            <ul className={classes['pods']}>
              {pods.slice(0, PODS).map((pod) => (
                <li key={pod.uid} data-phase={pod.phase} title={`${pod.name} · ${pod.reason || pod.phase}`}>
                  {pod.role} {pod.index} <span className="cv-soft">{pod.reason || pod.phase}</span>
                </li>
              ))}
              {pods.length > PODS && <li>{t('deferred:relations.more', { count: pods.length - PODS })}</li>}
            </ul>
          </Box>
        ))}
        {nodes.length === 0 && <span className="cv-soft">{t('deferred:relations.noPods')}</span>}
      </div>
    </div>
  );
}

function Box({ kind, isMissing = false, children }: { kind: string; isMissing?: boolean; children: ReactNode }) {
  return (
    <div className={classes['box']} data-missing={isMissing}>
      <small>{kind}</small>
      {children}
    </div>
  );
}
