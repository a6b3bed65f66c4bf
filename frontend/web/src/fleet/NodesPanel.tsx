/** The nodes of a cluster: searched, ordered and paged by the server, kept in the address. */
import { useQuery } from '@tanstack/react-query';
import { SearchX, Server } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { PAGE_SIZE, useListState } from '../ui/list.ts';
import { Empty, Failed } from '../ui/Message.tsx';
import { Pager } from '../ui/Pager.tsx';
import { Panel } from '../ui/Panel.tsx';
import { SettledInput } from '../ui/SettledInput.tsx';
import { NodeTable } from './NodeTable.tsx';
import { nodesQuery } from './queries.ts';
import { StaleNote } from './StaleNote.tsx';
import { isReachable } from './totals.ts';
import classes from './ClusterPage.module.css';

export function NodesPanel({ name, cluster }: { name: string; cluster: Cluster | undefined }) {
  const { t } = useTranslation();
  const list = useListState();
  const ordering = list.get('ordering') || 'name';
  const query = { cluster: name, search: list.search, ordering, page: list.page, page_size: PAGE_SIZE };
  const { data, error, refetch, isPlaceholderData } = useQuery(nodesQuery(query));
  const isEmpty = data?.count === 0;
  return (
    <Panel title={t('cluster.nodes')} flush>
      <StaleNote cluster={cluster} />
      <div className={classes['search']}>
        <SettledInput label={t('cluster.searchNodes')} value={list.search} onSettle={(search) => list.set({ search })} />
      </div>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {isEmpty && list.search && <Empty title={t('cluster.noSuchNode', { search: list.search })} icon={SearchX} />}
      {isEmpty && !list.search && (
        <Empty title={t('cluster.emptyTitle')} icon={Server}>
          {t('cluster.emptyBody')}
        </Empty>
      )}
      {!(error && !data) && !isEmpty && (
        <NodeTable
          nodes={data?.results}
          ordering={ordering}
          onOrder={(next) => list.set({ ordering: next === 'name' ? '' : next })}
          stale={isPlaceholderData}
          known={!cluster || isReachable(cluster)}
        />
      )}
      {data && <Pager page={list.page} pageSize={PAGE_SIZE} count={data.count} onPage={(page) => list.set({ page: String(page) })} />}
    </Panel>
  );
}
