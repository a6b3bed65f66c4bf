/** The jobs of a queue or a cluster over time: a line for each, with a bar for each attempt, and the same as a table. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Layers, Table2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { DataTable } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { SkeletonRows } from '../ui/SkeletonRows.tsx';
import { AttemptBars, useMoments } from './AttemptBars.tsx';
import { ChartPanel } from './ChartPanel.tsx';
import { attemptsQuery } from './queries.ts';
import { useRange } from './range.ts';

type Of = { queue: string } | { cluster: string };

export function JobsOverTime({ of }: { of: Of }) {
  const { t } = useTranslation();
  return (
    <ChartPanel title={t('chart.jobs')}>
      <Jobs of={of} label={t('chart.jobs')} />
    </ChartPanel>
  );
}

function Jobs({ of, label }: { of: Of; label: string }) {
  const { t } = useTranslation('deferred');
  const [range] = useRange();
  const [tabled, setTabled] = useState(false);
  const moments = useMoments();
  const { data, error, refetch } = useQuery(attemptsQuery(of, range));
  if (!data && error) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <table aria-busy><tbody><SkeletonRows columns={2} /></tbody></table>;
  if (data.results.length === 0) {
    return (
      <Empty title={t('jobs.emptyTitle')} icon={Layers}>
        {t('jobs.emptyBody')}
      </Empty>
    );
  }
  return (
    <>
      {!tabled && <AttemptBars answer={data} label={label} />}
      {tabled && (
        <DataTable
          caption={label}
          rows={data.results}
          rowKey={({ job, number }) => `${job} ${number}`}
          columns={[
            { id: 'job', header: t('jobs.job'), cell: (row) => `${row.namespace}/${row.name}` },
            { id: 'attempt', header: t('jobs.attempt'), align: 'end', cell: (row) => row.number },
            { id: 'cluster', header: t('hours.cluster'), cell: (row) => row.cluster },
            { id: 'gpus', header: 'GPU', align: 'end', cell: (row) => row.gpus },
            { id: 'placed', header: t('jobs.placed'), cell: (row) => moments(row.placed_at) },
            { id: 'started', header: t('jobs.started'), cell: (row) => moments(row.started_at) },
            { id: 'ended', header: t('jobs.ended'), cell: (row) => moments(row.ended_at) },
            { id: 'outcome', header: t('jobs.outcome'), cell: (row) => row.outcome },
          ]}
        />
      )}
      {data.is_cut && <p className="cv-soft">{t('jobs.cut', { count: data.results.length })}</p>}
      <Button size="compact-xs" variant="subtle" leftSection={<Table2 size={13} aria-hidden />} aria-expanded={tabled} onClick={() => setTabled(!tabled)}>
        {t(tabled ? 'hideTable' : 'asTable')}
      </Button>
    </>
  );
}
