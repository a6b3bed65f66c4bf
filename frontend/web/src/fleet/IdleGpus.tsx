/** Running jobs that have left GPUs idle for long, what wastes most first; each is a door to its job. */
import { useQuery } from '@tanstack/react-query';
import { Gauge } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { IdleJob } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { type Column, DataTable } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './FleetPanels.module.css';
import { idleGpusQuery } from './queries.ts';

/** Of the cluster that is named, or of the one in scope. */
export function IdleGpus({ cluster: named }: { cluster?: string }) {
  const { t, i18n } = useTranslation('deferred');
  const scope = useScope();
  const cluster = named ?? scope.cluster;
  const { data, error, refetch } = useQuery(idleGpusQuery);
  const rows = data?.results.filter((row) => (!cluster || row.cluster === cluster) && (!scope.namespace || row.namespace === scope.namespace));
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 });
  const columns: Column<IdleJob>[] = [
    { id: 'job', header: t('idle.job'), cell: ({ id, name }) => <Link to={`/jobs/${id}`}>{name}</Link> },
    { id: 'team', header: t('idle.team'), cell: ({ namespace }) => namespace },
    { id: 'queue', header: t('idle.queue'), cell: ({ queue }) => queue || '–' },
    { id: 'cluster', header: t('idle.cluster'), cell: (row) => row.cluster },
    { id: 'gpus', header: t('idle.gpus'), align: 'end', cell: ({ idle_gpus, gpus }) => t('idle.of', { idle: idle_gpus, all: gpus }) },
    { id: 'since', header: t('idle.since'), align: 'end', cell: ({ since }) => <Age since={since} /> },
    { id: 'hours', header: t('idle.hours'), align: 'end', cell: ({ gpu_hours }) => number.format(gpu_hours) },
  ];
  const note = data && t('idle.note', { percent: number.format(data.percent), minutes: number.format(data.minutes) });
  return (
    <div className={classes['wide']}>
      <Panel title={t('idle.title')} note={note} flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {data && rows?.length === 0 && (
          <Empty title={t('idle.emptyTitle')} icon={Gauge}>
            {t('idle.emptyBody', { minutes: number.format(data.minutes) })}
          </Empty>
        )}
        {!(error && !data) && rows?.length !== 0 && <DataTable caption={t('idle.title')} columns={columns} rows={rows} rowKey={({ id }) => id} />}
        {data?.is_cut && <p className="cv-soft">{t('idle.cut')}</p>}
      </Panel>
    </div>
  );
}
