/** The fleet in five numbers, each a door to the list behind it. */
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { GpuBar } from './GpuBar.tsx';
import { percent } from './resources.ts';
import type { FleetTotals } from './totals.ts';
import classes from './FleetTiles.module.css';

interface Props {
  totals: FleetTotals;
  /** Undefined while they are not counted. */
  waiting: number | undefined;
  running: number | undefined;
}

export function FleetTiles({ totals, waiting, running }: Props) {
  const { t, i18n } = useTranslation();
  const { gpus, clusters, nodes } = totals;
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
      </div>
      <Tile title={t('fleet.clustersReady')} to="/fleet?view=table" short={clusters.ready < clusters.total}>
        {clusters.ready}
        <small>/ {clusters.total}</small>
      </Tile>
      <Tile title={t('fleet.nodesReady')} to="/fleet?view=table" short={nodes.ready < nodes.total}>
        {number.format(nodes.ready)}
        <small>/ {number.format(nodes.total)}</small>
      </Tile>
      <Tile title={t('fleet.jobsRunning')} to="/jobs?state=Running">
        {running === undefined ? '–' : number.format(running)}
      </Tile>
      <Tile title={t('fleet.jobsWaiting')} to="/jobs?state=Queued">
        {waiting === undefined ? '–' : number.format(waiting)}
      </Tile>
    </section>
  );
}

function Tile({ title, to, short = false, children }: { title: string; to?: string; short?: boolean; children: ReactNode }) {
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
