/** The incidents of the fleet, the latest first: one row for each cause, with how many jobs it stopped. */
import { SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ShieldCheck } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Incident } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { useNow } from '../ui/clock.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { type Column, DataTable } from '../ui/DataTable.tsx';
import { PAGE_SIZE, useListState } from '../ui/list.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { commandsOfIncidents, incidentsQuery } from './queries.ts';
import { StageBadge } from './StageBadge.tsx';
import { lasted, nodesOf, titleOf } from './words.ts';

export default function IncidentsPage() {
  const { t } = useTranslation('deferred');
  const scope = useScope();
  const list = useListState();
  const open = list.get('open');
  const { data, error, refetch, isPlaceholderData } = useQuery(incidentsQuery({ ...scope, open, page: list.page, page_size: PAGE_SIZE }));
  return (
    <>
      <PageHeader title={t('incident.title')} note={data && t('incident.count', { count: data.count })}>
        <SegmentedControl
          size="xs"
          aria-label={t('incident.which')}
          value={open}
          onChange={(next) => list.set({ open: next })}
          data={['', 'true'].map((value) => ({ value, label: t(value ? 'incident.lasting' : 'incident.all') }))}
        />
        <CopyAs commands={commandsOfIncidents(scope, open)} />
      </PageHeader>
      <Panel flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {data?.count === 0 && (
          <Empty title={t('incident.none')} icon={ShieldCheck}>
            {t('incident.noneBody')}
          </Empty>
        )}
        {!(error && !data) && data?.count !== 0 && <IncidentTable rows={data?.results} stale={isPlaceholderData} />}
        {data && <Pager page={list.page} pageSize={PAGE_SIZE} count={data.count} onPage={(page) => list.set({ page: String(page) })} />}
      </Panel>
    </>
  );
}

function IncidentTable({ rows, stale }: { rows: Incident[] | undefined; stale: boolean }) {
  const { t, i18n } = useTranslation('deferred');
  const now = useNow(1_000);
  const columns: Column<Incident>[] = [
    {
      id: 'what',
      header: t('incident.what'),
      cell: (incident) => (
        <>
          <Link to={`/incidents/${incident.id}`}>{titleOf(incident, t)}</Link>{' '}
          <span className="cv-soft">{nodesOf(incident, t)}</span>
        </>
      ),
    },
    { id: 'stage', header: t('incident.state'), width: '130px', cell: ({ stage }) => <StageBadge stage={stage} /> },
    { id: 'began', header: t('incident.began'), width: '120px', cell: ({ began_at: at }) => <Age since={at} ago /> },
    { id: 'lasted', header: t('incident.lasted'), width: '110px', cell: (incident) => lasted(incident, now, i18n.language) },
    { id: 'jobs', header: t('incident.jobs'), align: 'end', cell: ({ jobs, other_jobs: others }) => jobs + others },
    { id: 'waiting', header: t('incident.waiting'), align: 'end', cell: ({ waiting }) => waiting },
  ];
  return <DataTable caption={t('incident.title')} columns={columns} rows={rows} rowKey={({ id }) => id} stale={stale} />;
}
