/** All jobs, narrowed, ordered and paged by the server as the address says. */
import { Button } from '@mantine/core';
import { Layers, SearchX } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { useShortcuts } from '../ui/shortcuts.ts';
import { SavedViews } from '../views/SavedViews.tsx';
import { BulkBar } from './BulkBar.tsx';
import { readColumns, writeColumns } from './columnNames.ts';
import { ColumnMenu } from './ColumnMenu.tsx';
import { commandsOfList } from './commands.ts';
import { ExportMenu } from './ExportMenu.tsx';
import { ALL_JOBS, isNarrowed, type JobFilters, readFilters, searchOf, writeView } from './filters.ts';
import { GroupBar } from './GroupBar.tsx';
import { GroupRows } from './GroupRows.tsx';
import { readGroup } from './groups.ts';
import { JobFilterBar } from './JobFilterBar.tsx';
import { JobTable } from './JobTable.tsx';
import { useJobList } from './useJobList.ts';

const MOST = 1_000;

export default function JobsPage() {
  const { t } = useTranslation();
  const [params, setParams] = useSearchParams();
  const search = useRef<HTMLInputElement>(null);
  const filters = readFilters(params);
  const by = readGroup(params.get('group'));
  const columnText = params.get('columns');
  const columns = useMemo(() => readColumns(columnText), [columnText]);
  const list = useJobList(filters);
  const { selected, select, clear } = useSelected();
  const show = (next: JobFilters, view: { group?: string; columns?: string } = {}) =>
    setParams(writeView(next, { group: by ?? '', columns: writeColumns(columns), ...view }));
  // Changes start from the address, which may be a step ahead of what is drawn.
  const narrow = (part: Partial<JobFilters>) => show({ ...readFilters(new URLSearchParams(window.location.search)), ...part });
  useShortcuts({ '/': () => search.current?.focus() });
  return (
    <>
      <PageHeader title={t('jobs.title')} note={list.count !== undefined && t('jobs.count', { count: list.count })}>
        <SavedViews list="jobs" search={params.toString()} onOpen={(view) => setParams(new URLSearchParams(view))} />
        <ColumnMenu shown={columns} onShow={(next) => show(filters, { columns: writeColumns(next) })} />
        <ExportMenu filters={filters} />
        <CopyAs commands={commandsOfList(filters)} />
      </PageHeader>
      <Panel flush>
        <JobFilterBar
          filters={filters}
          searchRef={search}
          onChange={narrow}
          onClear={() => show(ALL_JOBS)}
        >
          <GroupBar by={by} onBy={(group) => show(filters, { group })} />
        </JobFilterBar>
        <BulkBar ids={[...selected]} onClear={clear} />
        {list.error && list.count === undefined && <Failed error={list.error} onRetry={list.retry} />}
        {list.count === 0 && <NoJobs narrowed={isNarrowed(filters)} onClear={() => show(ALL_JOBS)} />}
        {by && list.count !== 0 && (
          <GroupRows filters={filters} by={by} columns={columns} onChange={narrow} selected={selected} onSelect={select} />
        )}
        {!by && list.count !== 0 && !(list.error && list.count === undefined) && (
          <JobTable
            key={searchOf(filters)}
            list={list}
            columns={columns}
            ordering={filters.ordering}
            onOrder={(ordering) => narrow({ ordering })}
            selected={selected}
            onSelect={select}
          />
        )}
      </Panel>
    </>
  );
}

/** The jobs picked, until they are let go of; as many as one call takes. */
function useSelected() {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const select = (ids: string[], on: boolean) =>
    setSelected((now) => {
      const next = new Set(now);
      for (const id of ids) if (on && next.size < MOST) next.add(id);
      if (!on) for (const id of ids) next.delete(id);
      return next;
    });
  return { selected, select, clear: () => setSelected(new Set()) };
}

function NoJobs({ narrowed, onClear }: { narrowed: boolean; onClear: () => void }) {
  const { t } = useTranslation();
  if (narrowed) {
    return (
      <Empty title={t('jobs.noneMatchTitle')} icon={SearchX}>
        <p>{t('jobs.noneMatchBody')}</p>
        <Button size="xs" variant="default" onClick={onClear}>
          {t('jobs.clear')}
        </Button>
      </Empty>
    );
  }
  return (
    <Empty title={t('jobs.emptyTitle')} icon={Layers}>
      {t('jobs.emptyBody')} <code className="cv-mono">convoy apply -f job.yaml</code>
    </Empty>
  );
}
