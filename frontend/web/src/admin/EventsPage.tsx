/** All that happened in the fleet, newest first; narrowed by words and kind, held still on request, for reading. */
import { Button, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Pause, Play, ScrollText } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { JobEvent } from '../api/types.ts';
import { commandsOfEvents } from '../fleet/commands.ts';
import { EventText } from '../fleet/EventText.tsx';
import { whereOf } from '../fleet/Ticker.tsx';
import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { PAGE_SIZE, useListState } from '../ui/list.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { SettledInput } from '../ui/SettledInput.tsx';
import { eventsQuery } from './queries.ts';

export default function EventsPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const list = useListState();
  const type = list.get('type');
  const scope = useScope();
  const query = { ...scope, search: list.search, type, page: list.page, page_size: PAGE_SIZE };
  const { data, error, refetch } = useQuery(eventsQuery(query));
  const [held, setHeld] = useState<JobEvent[] | null>(null);
  const rows = held ?? data?.results;
  return (
    <>
      <PageHeader title={t('deferred:events.title')} note={data && t('deferred:events.count', { count: data.count })}>
        <SettledInput label={t('deferred:events.search')} value={list.search} onSettle={(search) => list.set({ search })} />
        <SegmentedControl
          size="xs"
          aria-label={t('deferred:events.type')}
          value={type}
          onChange={(next) => list.set({ type: next })}
          data={['', 'Warning'].map((value) => ({ value, label: t(value ? 'deferred:events.warnings' : 'deferred:events.all') }))}
        />
        <Button
          size="xs"
          variant="default"
          leftSection={held ? <Play size={13} aria-hidden /> : <Pause size={13} aria-hidden />}
          onClick={() => setHeld(held ? null : (data?.results ?? []))}
        >
          {t(held ? 'deferred:events.resume' : 'deferred:events.pause')}
        </Button>
        <CopyAs commands={commandsOfEvents(scope, { search: list.search, type })} />
      </PageHeader>
      <Panel flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {rows?.length === 0 && <Empty title={t('deferred:events.none')} icon={ScrollText} />}
        {!(error && !data) && rows?.length !== 0 && <EventTable rows={rows} />}
        {data && <Pager page={list.page} pageSize={PAGE_SIZE} count={data.count} onPage={(page) => list.set({ page: String(page) })} />}
      </Panel>
    </>
  );
}

export function EventTable({ rows }: { rows: JobEvent[] | undefined }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <DataTable
      caption={t('deferred:events.title')}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        { id: 'at', header: t('deferred:events.at'), width: '110px', cell: ({ last_at: at }) => <Age since={at} ago /> },
        { id: 'reason', header: t('deferred:events.reason'), width: '190px', cell: ({ reason }) => reason },
        {
          id: 'about',
          header: t('deferred:events.about'),
          width: '24%',
          cell: (event) => (
            <Link to={whereOf(event)}>
              {[event.regarding.kind, [event.regarding.namespace, event.regarding.name].filter(Boolean).join('/')].join(' ')}
            </Link>
          ),
        },
        { id: 'message', header: t('deferred:events.message'), cell: (event) => <EventText event={event} /> },
        { id: 'count', header: t('deferred:events.times'), align: 'end', cell: ({ count }) => count },
      ]}
    />
  );
}
