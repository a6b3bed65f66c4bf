/** The fleet in five numbers, each a door to the list behind it. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { Term } from '../ui/Term.tsx';
import { GpuBar } from './GpuBar.tsx';
import { percent } from './resources.ts';
import type { FleetTotals } from './totals.ts';
import trouble from './Trouble.module.css';
import classes from './FleetTiles.module.css';

interface Props {
  totals: FleetTotals;
  /** Undefined while they are not counted. */
  waiting: number | undefined;
  running: number | undefined;
}

export function FleetTiles({ totals, waiting, running }: Props) {
  const { t, i18n } = useTranslation();
  const { gpus, clusters, nodes, silent, starting } = totals;
  const number = new Intl.NumberFormat(i18n.language);
  return (
    <section className={classes['tiles']} aria-label={t('fleet.totals')}>
      <div className={classes['gpus']}>
        <h2>{t('gpus.title')}</h2>
        <p className={classes['value']}>
          {percent(gpus.requested + gpus.held, gpus.allocatable, i18n.language)}
          <small>{t('gpus.taken', { total: number.format(gpus.allocatable) })}</small>
        </p>
        <GpuBar capacity={gpus} name={t('fleet.title')} size="tall" />
        <Apart totals={totals} />
      </div>
      <Tile title={t('fleet.clustersReady')} to="/fleet?view=table" short={clusters.ready < clusters.total}>
        {clusters.ready}
        <small>/ {clusters.total}</small>
      </Tile>
      <Tile title={t('fleet.nodesReady')} to="/fleet?view=table" short={nodes.ready < nodes.total || silent.length > 0}>
        {number.format(nodes.ready)}
        <small>/ {number.format(nodes.total)}</small>
      </Tile>
      <Tile title={<Term word="running">{t('fleet.jobsRunning')}</Term>} to="/jobs?state=Running">
        {running === undefined ? '–' : number.format(running)}
        {starting > 0 && <small title={t('glossary.starting')}>{t('fleet.starting', { count: starting })}</small>}
      </Tile>
      <Tile title={t('fleet.jobsWaiting')} to="/jobs?state=Queued">
        {waiting === undefined ? '–' : number.format(waiting)}
      </Tile>
    </section>
  );
}

/** "28 of 60 GPUs reachable; 32 on north, silent for 2m 34s". */
function Apart({ totals: { gpus, allGpus, silent } }: { totals: FleetTotals }) {
  const { t } = useTranslation();
  return (
    <p className={trouble['apart']} role="status">
      {silent.length > 0 && t('fleet.reachable', { reachable: gpus.allocatable, total: allGpus })}
      {silent.map(({ name, gpus: count, since }) => (
        <span key={name}>
          ; {t('fleet.unreachableOn', { count, name })} <Age since={since} exact />
        </span>
      ))}
    </p>
  );
}

function Tile({ title, to, short = false, children }: { title: ReactNode; to?: string; short?: boolean; children: ReactNode }) {
  const body = (
    <>
      <h2>{title}</h2>
      <p className={classes['value']} data-short={short}>
        {children}
      </p>
    </>
  );
  if (to === undefined) return <div>{body}</div>;
  return (
    <Link to={to} className={classes['link']}>
      {body}
    </Link>
  );
}
