/** What the GPUs of each team or queue do: how many its running jobs have, how many are measured and idle, and the mean. */
import { SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Gauge } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { GroupUses } from '../api/types.ts';
import { type Column, DataTable } from '../ui/DataTable.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import classes from './FleetPanels.module.css';
import { gpuGroupsQuery } from './queries.ts';

type By = 'namespace' | 'queue';
type Group = GroupUses['results'][number];

export function GpuGroups() {
  const { t } = useTranslation('deferred');
  const [by, setBy] = useState<By>('namespace');
  const { data, error, refetch } = useQuery(gpuGroupsQuery(by));
  const columns: Column<Group>[] = [
    { id: 'name', header: t(`gpuGroups.${by}`), cell: ({ name }) => name || t('gpuGroups.none') },
    { id: 'gpus', header: t('gpuGroups.gpus'), align: 'end', cell: ({ gpus }) => gpus },
    { id: 'measured', header: t('gpuGroups.measured'), align: 'end', cell: ({ measured }) => measured },
    { id: 'idle', header: t('gpuGroups.idle'), align: 'end', cell: ({ idle, measured }) => (measured > 0 ? idle : '–') },
    { id: 'use', header: t('gpuGroups.use'), align: 'end', cell: ({ utilization: use }) => (use === null ? '–' : `${String(Math.round(use))} %`) },
  ];
  const choice = (
    <SegmentedControl
      size="xs"
      aria-label={t('gpuGroups.by')}
      value={by}
      onChange={(next) => setBy(next === 'queue' ? 'queue' : 'namespace')}
      data={(['namespace', 'queue'] as const).map((value) => ({ value, label: t(`gpuGroups.${value}`) }))}
    />
  );
  return (
    <div className={classes['wide']}>
      <Panel title={t('gpuGroups.title')} actions={choice} flush>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {data?.results.length === 0 && (
          <Empty title={t('gpuGroups.emptyTitle')} icon={Gauge}>
            {t('gpuGroups.emptyBody')}
          </Empty>
        )}
        {!(error && !data) && data?.results.length !== 0 && (
          <DataTable caption={t('gpuGroups.title')} columns={columns} rows={data?.results} rowKey={({ name }) => name} />
        )}
      </Panel>
    </div>
  );
}
