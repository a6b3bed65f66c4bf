/** Who changed what, newest first; a line opens to what the fields were and became. */
import { Modal, UnstyledButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { History } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { AuditLine } from '../api/types.ts';
import { useScope } from '../scope/useScope.ts';
import { Age } from '../ui/Age.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { PAGE_SIZE, useListState } from '../ui/list.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { SettledInput } from '../ui/SettledInput.tsx';
import { commandsOfAudit } from './commands.ts';
import classes from './admin.module.css';
import { auditEntryQuery, auditQuery } from './queries.ts';

export default function AuditPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const list = useListState();
  const [open, setOpen] = useState<AuditLine | null>(null);
  const { namespace, cluster } = useScope();
  const query = { namespace, cluster, search: list.search, actor: list.get('actor'), page: list.page, page_size: PAGE_SIZE };
  const { data, error, refetch } = useQuery(auditQuery(query));
  return (
    <>
      <PageHeader title={t('deferred:audit.title')} note={data && t('deferred:audit.count', { count: data.count })}>
        <SettledInput label={t('deferred:audit.search')} value={list.search} onSettle={(search) => list.set({ search })} />
        <SettledInput label={t('deferred:audit.actor')} value={list.get('actor')} onSettle={(actor) => list.set({ actor })} />
        <CopyAs commands={commandsOfAudit(query)} />
      </PageHeader>
      <Panel flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {data?.count === 0 && <Empty title={t('deferred:audit.none')} icon={History} />}
        {!(error && !data) && data?.count !== 0 && <Lines rows={data?.results} onOpen={setOpen} />}
        {data && <Pager page={list.page} pageSize={PAGE_SIZE} count={data.count} onPage={(page) => list.set({ page: String(page) })} />}
      </Panel>
      {open && <Entry line={open} onClose={() => setOpen(null)} />}
    </>
  );
}

function Lines({ rows, onOpen }: { rows: AuditLine[] | undefined; onOpen: (line: AuditLine) => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <DataTable
      caption={t('deferred:audit.title')}
      rows={rows}
      rowKey={({ id }) => String(id)}
      columns={[
        { id: 'at', header: t('deferred:events.at'), width: '110px', cell: ({ at }) => <Age since={at} ago /> },
        { id: 'actor', header: t('deferred:audit.actor'), cell: ({ actor }) => actor },
        { id: 'door', header: t('deferred:audit.door'), cell: ({ door }) => door },
        {
          id: 'verb',
          header: t('deferred:audit.did'),
          cell: (line) => (
            <UnstyledButton className={classes['open']} onClick={() => onOpen(line)}>
              {`${line.verb} ${line.kind} ${[line.namespace, line.name].filter(Boolean).join('/')}`}
            </UnstyledButton>
          ),
        },
        { id: 'outcome', header: t('deferred:audit.outcome'), cell: ({ outcome }) => outcome },
      ]}
    />
  );
}

function Entry({ line, onClose }: { line: AuditLine; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data } = useQuery(auditEntryQuery(line.id));
  const fields = [...new Set([...Object.keys(data?.before ?? {}), ...Object.keys(data?.after ?? {})])];
  const text = (value: unknown) => (value === undefined ? '–' : JSON.stringify(value, null, 1));
  return (
    <Modal opened onClose={onClose} title={`${line.verb} ${line.kind} ${line.name}`} size="xl" closeButtonProps={{ 'aria-label': t('common.close') }}>
      <p className="cv-soft">{[line.request, line.address].filter(Boolean).join(' · ')}</p>
      <ServerText text={line.message ?? ''} />
      <DataTable
        caption={t('deferred:audit.changes')}
        rows={data ? fields : undefined}
        rowKey={(field) => field}
        columns={[
          { id: 'field', header: t('deferred:audit.field'), cell: (field) => field },
          ...(['before', 'after'] as const).map((side) => ({
            id: side,
            header: t(`deferred:audit.${side}`),
            cell: (field: string) => <pre className={classes['value']}>{text(data?.[side]?.[field])}</pre>,
          })),
        ]}
      />
    </Modal>
  );
}
