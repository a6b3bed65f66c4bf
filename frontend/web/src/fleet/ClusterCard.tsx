/** One cluster at a glance: state, accelerators, CPU and memory, nodes, jobs, heartbeat. */
import { MapPin } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { ClosedBadge, ClusterBadge } from './ClusterBadge.tsx';
import { GpuBar } from './GpuBar.tsx';
import { SmallBar } from './SmallBar.tsx';
import { placeOf } from './place.ts';
import { accelerators, NOTHING } from './resources.ts';
import classes from './ClusterCard.module.css';

export function ClusterCard({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const gpus = accelerators(cluster.capacity);
  return (
    <article className={classes['card']} data-state={cluster.state} aria-label={cluster.name}>
      <div className={classes['head']}>
        <Link to={`/fleet/${encodeURIComponent(cluster.name)}`} className={classes['name']}>
          {cluster.name}
        </Link>
        <span className={classes['badges']}>
          <ClosedBadge cluster={cluster} />
          <ClusterBadge cluster={cluster} />
        </span>
      </div>
      <Whereabouts cluster={cluster} />
      <div className={classes['gpus']}>
        <p>
          <strong>{gpus.requested + gpus.held}</strong> {t('fleet.ofGpus', { total: gpus.allocatable })}
        </p>
        <GpuBar capacity={gpus} name={cluster.name} />
      </div>
      <div className={classes['small']}>
        <SmallBar resource="cpu" capacity={cluster.capacity['cpu'] ?? NOTHING} />
        <SmallBar resource="memory" capacity={cluster.capacity['memory'] ?? NOTHING} />
      </div>
      <Facts cluster={cluster} />
    </article>
  );
}

function Whereabouts({ cluster }: { cluster: Cluster }) {
  const place = placeOf(cluster);
  const trouble = cluster.state === 'Ready' ? '' : cluster.message || cluster.reason;
  return (
    <p className={classes['where']} data-bad={trouble !== ''} title={trouble}>
      {trouble !== '' ? (
        trouble
      ) : (
        <>
          {place !== '' && <MapPin size={12} aria-hidden />}
          {[place, cluster.version].filter(Boolean).join(' · ')}
        </>
      )}
    </p>
  );
}

function Facts({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const { nodes, jobs } = cluster;
  return (
    <dl className={classes['facts']}>
      <div>
        <dt>{t('fleet.nodesReady')}</dt>
        <dd data-short={nodes.ready < nodes.total}>
          {nodes.ready} / {nodes.total}
        </dd>
      </div>
      <div>
        <dt>{t('fleet.jobsRunning')}</dt>
        <dd>
          <Link to={`/jobs?state=Running&cluster=${encodeURIComponent(cluster.name)}`}>{jobs.running}</Link>
        </dd>
      </div>
      <div>
        <dt>{t('fleet.heartbeat')}</dt>
        <dd>{cluster.last_heartbeat ? <Age since={cluster.last_heartbeat} /> : '–'}</dd>
      </div>
    </dl>
  );
}
