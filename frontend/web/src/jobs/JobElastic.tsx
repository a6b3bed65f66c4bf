/** What becomes of an elastic job: how many workers it had, and the notices that its places are taken back. */
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import type { JobDetail } from '../api/types.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import type { Line } from '../ui/chart/data.ts';
import { useNow } from '../ui/clock.ts';
import { DataTable } from '../ui/DataTable.tsx';
import { formatDuration } from '../ui/duration.ts';
import { Panel } from '../ui/Panel.tsx';
import { attemptsQuery, noticesQuery } from './queries.ts';
import type { Notice } from './types.ts';
import { workersOverTime } from './workers.ts';

const SLOW_MS = 15_000;
const MOST = 20;

export function JobElastic({ job }: { job: JobDetail }) {
  const { ready } = useTranslation('deferred', { useSuspense: false });
  if (!ready) return null;
  return (
    <>
      {job.size && <Workers job={job} />}
      <Notices id={job.id} />
    </>
  );
}

function Workers({ job }: { job: JobDetail }) {
  const { t } = useTranslation('deferred');
  const { data, error, refetch } = useQuery(attemptsQuery(job.id));
  const now = useNow(SLOW_MS);
  const shown = data && workersOverTime(job, data.results, now);
  if (data && !shown) return null;
  const title = t('elastic.workers');
  const line = (id: 'used' | 'min' | 'max', values: number[]): Line => ({ id, look: id, label: t(`elastic.line.${id}`), values });
  const flat = (value: number) => (shown?.values ?? []).map(() => value);
  const lines = shown
    ? [line('used', shown.values), line('min', flat(shown.min)), ...(shown.max === null ? [] : [line('max', flat(shown.max))])]
    : [];
  return (
    <Panel title={title} note={shown?.role}>
      <SeriesChart
        label={title}
        error={error}
        onRetry={() => void refetch()}
        chart={shown ? { times: shown.times, step: shown.step, lines } : undefined}
      />
    </Panel>
  );
}

function Notices({ id }: { id: string }) {
  const { t, i18n } = useTranslation('deferred');
  const { data } = useQuery(noticesQuery(id));
  if (!data || data.length === 0) return null;
  const after = ({ at }: Notice, moment: string | null) =>
    moment === null ? '–' : `+${formatDuration((Date.parse(moment) - Date.parse(at)) / 1000, i18n.language)}`;
  return (
    <Panel title={t('elastic.notices')} flush>
      <DataTable
        caption={t('elastic.notices')}
        rows={data.slice(-MOST).reverse()}
        rowKey={(notice) => `${notice.attempt} ${notice.pod} ${notice.at}`}
        columns={[
          { id: 'pod', header: t('elastic.pod'), cell: ({ pod }) => pod },
          { id: 'node', header: t('elastic.node'), cell: ({ node }) => node ?? '' },
          { id: 'cause', header: t('elastic.cause'), cell: ({ cause }) => cause },
          { id: 'deadline', header: t('elastic.deadline'), cell: (notice) => <Deadline notice={notice} /> },
          { id: 'heard', header: t('elastic.heard'), cell: (notice) => after(notice, notice.heard_at) },
          { id: 'left', header: t('elastic.left'), cell: (notice) => after(notice, notice.left_at) },
          { id: 'step', header: t('elastic.step'), align: 'end', cell: ({ saved_step: step }) => step ?? '–' },
        ]}
      />
    </Panel>
  );
}

/** Counts down while the pod may still save. */
function Deadline({ notice: { deadline, left_at } }: { notice: Notice }) {
  const { t, i18n } = useTranslation('deferred');
  const slowly = useNow(SLOW_MS);
  const open = left_at === null && Date.parse(deadline) > slowly;
  const now = useNow(open ? 1_000 : SLOW_MS);
  const left = (Date.parse(deadline) - now) / 1000;
  return (
    <time dateTime={deadline} title={new Date(deadline).toLocaleString(i18n.language)}>
      {left_at === null && left > 0 ? t('elastic.in', { time: formatDuration(left, i18n.language) }) : t('elastic.over')}
    </time>
  );
}
