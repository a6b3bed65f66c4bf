/** The quota tree: guaranteed and used amounts; changed by draft, with its effect previewed, and restored from history. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { Problem } from '../api/problem.ts';
import { GpuHours } from '../series/GpuHours.tsx';
import { Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { FirstTree } from './FirstTree.tsx';
import { treeQuery } from './queries.ts';
import { QuotaEditor } from './QuotaEditor.tsx';
import { UseOverTime } from './UseOverTime.tsx';
import classes from './QuotaEditor.module.css';

const ROWS = [0, 1, 2, 3, 4, 5];

export default function QuotaPage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { data, error, refetch } = useQuery(treeQuery);
  const none = error instanceof Problem && error.status === 404;
  if (data && !none) {
    return (
      <>
        <QuotaEditor tree={data} />
        <div className={classes['overTime']}>
          <UseOverTime paths={data.nodes.map(({ path }) => path)} />
          <GpuHours />
        </div>
      </>
    );
  }
  return (
    <>
      <PageHeader title={t('deferred:quotas.title')} />
      <Panel flush={!error}>
        {none && <FirstTree />}
        {error && !none && <Failed error={error} onRetry={() => void refetch()} />}
        {!error && (
          <div aria-busy>
            {ROWS.map((key) => (
              <Skeleton key={key} height={44} radius={6} m={12} width="auto" />
            ))}
          </div>
        )}
      </Panel>
    </>
  );
}
