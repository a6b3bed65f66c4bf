/** All jobs, narrowed, ordered and paged by the server as the address says. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Layers, SearchX } from 'lucide-react';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchParams } from 'react-router';

import { clustersQuery } from '../fleet/queries.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { useShortcuts } from '../ui/shortcuts.ts';
import { ALL_JOBS, change, isNarrowed, type JobFilters, PAGE_SIZE, readFilters, writeFilters } from './filters.ts';
import { JobFilterBar } from './JobFilterBar.tsx';
import { JobTable } from './JobTable.tsx';
import { jobsQuery } from './queries.ts';

export default function JobsPage() {
  const { t } = useTranslation();
  const [params, setParams] = useSearchParams();
  const search = useRef<HTMLInputElement>(null);
  const filters = readFilters(params);
  const { data, error, isPlaceholderData, refetch } = useQuery(jobsQuery(filters));
  const clusters = useQuery(clustersQuery);
  const show = (next: JobFilters) => setParams(writeFilters(next));
  // Changes start from the address, which may be a step ahead of what is drawn.
  const narrow = (part: Partial<JobFilters>) => show(change(readFilters(new URLSearchParams(window.location.search)), part));
  useShortcuts({ '/': () => search.current?.focus() });
  return (
    <>
      <PageHeader title={t('jobs.title')} note={data && t('jobs.count', { count: data.count })} />
      <Panel flush>
        <JobFilterBar
          filters={filters}
          clusters={clusters.data?.results.map(({ name }) => name) ?? []}
          searchRef={search}
          onChange={narrow}
          onClear={() => show(ALL_JOBS)}
        />
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {data?.results.length === 0 && <NoJobs narrowed={isNarrowed(filters)} onClear={() => show(ALL_JOBS)} />}
        {(data ? data.results.length > 0 : !error) && (
          <JobTable
            jobs={data?.results}
            ordering={filters.ordering}
            onOrder={(ordering) => narrow({ ordering })}
            stale={isPlaceholderData}
          />
        )}
        {data && (
          <Pager
            page={filters.page}
            pageSize={PAGE_SIZE}
            count={data.count}
            onPage={(page) => narrow({ page })}
          />
        )}
      </Panel>
    </>
  );
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
