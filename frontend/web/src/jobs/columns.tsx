/** The columns that the list of jobs can have, which of them it shows, and how each cell looks. */
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';

import type { Job } from '../api/types.ts';
import { reasonWords } from '../fleet/words.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { useNow } from '../ui/clock.ts';
import type { Column } from '../ui/DataTable.tsx';
import { formatDuration } from '../ui/duration.ts';
import { ALWAYS, type ColumnName } from './columnNames.ts';
import { JobActions } from './JobActions.tsx';
import { JobBadge } from './JobBadge.tsx';
import classes from './JobTable.module.css';

type Part = Omit<Column<Job>, 'id' | 'header'>;

const PARTS: Record<ColumnName, Part> = {
  name: { sort: 'name', cell: (job) => <Name job={job} /> },
  state: { sort: 'state', width: '122px', cell: ({ state }) => <JobBadge state={state} /> },
  reason: { cell: (job) => <Why job={job} /> },
  queue: { width: '96px', cell: ({ leaf }) => leaf && <Cut text={lastPart(leaf)} title={leaf} to={`/quotas?node=${encodeURIComponent(leaf)}`} /> },
  user: { width: '76px', cell: ({ submitted_by: user }) => <Cut text={user} /> },
  cluster: { width: '88px', cell: ({ cluster }) => cluster && <Cut text={cluster} to={`/fleet/${encodeURIComponent(cluster)}`} /> },
  gpus: { sort: 'gpus', width: '76px', align: 'end', cell: ({ gpus }) => gpus },
  priority: { sort: 'priority', width: '86px', align: 'end', cell: (job) => job.priority },
  attempt: { width: '84px', align: 'end', cell: ({ attempt }) => attempt || '–' },
  policy: { width: '140px', cell: ({ policy }) => policy && <Cut text={policy.name} /> },
  ran: { width: '80px', align: 'end', cell: (job) => <Ran job={job} /> },
  age: { sort: 'created_at', width: '84px', align: 'end', cell: (job) => <Age since={job.created_at} /> },
};

export function columnsOf(shown: readonly ColumnName[], t: TFunction): Column<Job>[] {
  const columns = [...ALWAYS, ...shown].map((id) => ({ id, header: t(`jobs.column.${id}`), ...PARTS[id] }));
  return [...columns, { id: 'actions', header: t('jobs.column.actions'), quiet: true, width: '48px', align: 'end', cell: (job) => <JobActions job={job} /> }];
}

/** With room for the columns that share what is left; below that the table scrolls. */
export function widthOf(columns: Column<Job>[]): number {
  const wide = columns.map(({ id, width }) => (width ? Number.parseInt(width, 10) : id === 'reason' ? 150 : 156));
  return 40 + wide.reduce((sum, each) => sum + each, 0);
}

function Name({ job }: { job: Job }) {
  return (
    <div className={classes['job']}>
      <Link to={`/jobs/${job.id}`} className={classes['name']} title={job.name}>
        {job.name}
      </Link>
      <span className={classes['sub']} title={`${job.namespace} · ${job.kind}`}>
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

/** The name of a queue without the path to it. */
const lastPart = (path: string) => path.slice(path.lastIndexOf('/') + 1);

/** One line, cut where the column ends. */
function Cut({ text, to, title = text }: { text: string; to?: string; title?: string }) {
  const about = { className: classes['cut'], title };
  return to ? (
    <Link to={to} {...about}>
      {text}
    </Link>
  ) : (
    <span {...about}>{text}</span>
  );
}

/** While all its pods ran, moves and waits left out: as the job's page counts it. */
function Ran({ job: { ran_s: ended, runs_since: since } }: { job: Job }) {
  const { i18n } = useTranslation();
  const now = useNow(15_000);
  if (!ended && !since) return '–';
  return formatDuration(ended + (since ? Math.max(0, (now - Date.parse(since)) / 1000) : 0), i18n.language);
}
