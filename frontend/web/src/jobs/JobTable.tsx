/** The list of jobs, a row each: what, where it stands and why, where it runs, how much it takes, since when. */
import type { TFunction } from 'i18next';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';

import type { Job } from '../api/types.ts';
import { reasonWords } from '../fleet/words.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import type { Column } from '../ui/DataTable.tsx';
import { VirtualTable } from '../ui/VirtualTable.tsx';
import { JobActions } from './JobActions.tsx';
import { JobBadge } from './JobBadge.tsx';
import classes from './JobTable.module.css';
import type { JobList } from './useJobList.ts';

interface Props {
  list: JobList;
  ordering: string;
  onOrder: (ordering: string) => void;
  selected: ReadonlySet<string>;
  onSelect: (ids: string[], on: boolean) => void;
}

export function JobTable({ list, ordering, onOrder, selected, onSelect }: Props) {
  const { t } = useTranslation();
  const columns = useMemo(() => columnsOf(t), [t]);
  return (
    <VirtualTable
      caption={t('jobs.title')}
      columns={columns}
      count={list.count}
      rowAt={list.rowAt}
      onRange={list.onRange}
      ordering={ordering}
      onOrder={onOrder}
      selection={{
        has: ({ id }) => selected.has(id),
        toggle: ({ id }, on) => onSelect([id], on),
        label: ({ name }) => t('list.select', { name }),
        all: {
          label: t('list.selectAll'),
          on: list.loaded.length > 0 && list.loaded.every(({ id }) => selected.has(id)),
          some: selected.size > 0,
          toggle: (on) => onSelect(list.loaded.map(({ id }) => id), on),
        },
      }}
    />
  );
}

function columnsOf(t: TFunction): Column<Job>[] {
  return [
    { id: 'name', header: t('jobs.column.name'), sort: 'name', width: '24%', cell: (job) => <Name job={job} /> },
    { id: 'state', header: t('jobs.column.state'), sort: 'state', width: '128px', cell: ({ state }) => <JobBadge state={state} /> },
    { id: 'reason', header: t('jobs.column.reason'), width: '30%', cell: (job) => <Why job={job} /> },
    { id: 'cluster', header: t('jobs.column.cluster'), cell: ({ cluster }) => <Where cluster={cluster} /> },
    { id: 'gpus', header: t('jobs.column.gpus'), sort: 'gpus', align: 'end', cell: ({ gpus }) => gpus },
    { id: 'priority', header: t('jobs.column.priority'), sort: 'priority', width: '96px', align: 'end', cell: (job) => job.priority },
    {
      id: 'age',
      header: t('jobs.column.age'),
      sort: 'created_at',
      align: 'end',
      cell: (job) => <Age since={job.created_at} />,
    },
    { id: 'actions', header: t('jobs.column.actions'), quiet: true, align: 'end', cell: (job) => <JobActions job={job} /> },
  ];
}

function Name({ job }: { job: Job }) {
  return (
    <div className={classes['job']}>
      <Link to={`/jobs/${job.id}`} className={classes['name']}>
        {job.name}
      </Link>
      <span className={classes['sub']}>
        {job.namespace} · {job.kind}
      </span>
    </div>
  );
}

function Why({ job }: { job: Job }) {
  const { t, i18n } = useTranslation();
  if (!job.reason) return null;
  const text = reasonWords(job.reason, job, { t, language: i18n.language });
  return (
    <span className={classes['reason']} title={text}>
      {text}
    </span>
  );
}

function Where({ cluster }: { cluster: string | null }) {
  if (!cluster) return <span className="cv-soft">–</span>;
  return (
    <Link to={`/fleet/${encodeURIComponent(cluster)}`} className={classes['cluster']}>
      {cluster}
    </Link>
  );
}
