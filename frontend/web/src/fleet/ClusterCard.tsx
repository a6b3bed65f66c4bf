/** One cluster at a glance: state, accelerators, CPU and memory, nodes, jobs, heartbeat. */
import { MapPin } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { Term } from '../ui/Term.tsx';
import { ClosedBadge, ClusterBadge, SimulatedBadge } from './ClusterBadge.tsx';
import { GpuBar } from './GpuBar.tsx';
import { SmallBar } from './SmallBar.tsx';
import { placeOf } from './place.ts';
import { NOTHING } from './resources.ts';
import { isReachable, silentSince } from './totals.ts';
import { troubleOf } from './trouble.ts';
import { TroubleText } from './TroubleText.tsx';
import classes from './ClusterCard.module.css';

export function ClusterCard({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const gpus = cluster.gpus;
  return (
    <article className={classes['card']} data-state={cluster.state} aria-label={cluster.name}>
      <div className={classes['head']}>
        <Link to={`/fleet/${encodeURIComponent(cluster.name)}`} className={classes['name']}>
          {cluster.name}
        </Link>
        <span className={classes['badges']}>
          <SimulatedBadge cluster={cluster} />
          <ClosedBadge cluster={cluster} />
          <ClusterBadge cluster={cluster} />
        </span>
      </div>
      <Whereabouts cluster={cluster} />
      <div className={classes['gpus']}>
        {isReachable(cluster) ? (
          <p>
            <strong>{gpus.requested + gpus.held}</strong> {t('fleet.ofGpus', { total: gpus.allocatable })}
          </p>
        ) : (
          <p>
            {t('fleet.lastSeen', { used: gpus.requested + gpus.held, total: gpus.allocatable })}{' '}
            <Age since={silentSince(cluster)} ago exact />
          </p>
        )}
        <div className={classes['known']} data-known={isReachable(cluster)}>
          <GpuBar capacity={gpus} name={cluster.name} />
        </div>
      </div>
      <div className={classes['small']} data-known={isReachable(cluster)}>
        <SmallBar resource="cpu" capacity={cluster.capacity['cpu'] ?? NOTHING} />
        <SmallBar resource="memory" capacity={cluster.capacity['memory'] ?? NOTHING} />
      </div>
      <Facts cluster={cluster} />
    </article>
  );
}

function Whereabouts({ cluster }: { cluster: Cluster }) {
  const place = placeOf(cluster);
  if (troubleOf(cluster) !== null) {
    return (
      <div className={classes['where']} data-bad>
        <TroubleText cluster={cluster} />
      </div>
    );
  }
  return (
    <p className={classes['where']}>
      {place !== '' && <MapPin size={12} aria-hidden />}
      {[place, cluster.version].filter(Boolean).join(' · ')}
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
        <dd data-short={nodes.ready < nodes.total || !isReachable(cluster)}>
          {isReachable(cluster) ? `${nodes.ready} / ${nodes.total}` : `? / ${nodes.total}`}
        </dd>
      </div>
      <div>
        <dt>
          <Term word="running">{t('fleet.jobsRunning')}</Term>
        </dt>
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
