/** One node: how it is, the jobs that have pods there, and draining it, whose effect is shown by name before it is confirmed. */
import { Anchor, Group, Skeleton } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Server } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useParams } from 'react-router';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { Node, NodeEvictions } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import classes from './ClusterPage.module.css';
import { commandsToSteerNode } from './commands.ts';
import { DrainEffect } from './DrainEffect.tsx';
import { NodeJobs } from './NodeJobs.tsx';
import { NodeBadge } from './NodeTable.tsx';
import { nodeDrainQuery, nodeEvictionsQuery, nodePath, nodeQuery } from './queries.ts';

export default function NodePage() {
  const { t } = useTranslation(['translation', 'deferred']);
  const { name: cluster = '', node: name = '' } = useParams();
  const [isAsked, setAsked] = useState(false);
  const { data, error, refetch: again } = useQuery(nodeQuery(cluster, name));
  const there = useQuery(nodeEvictionsQuery(cluster, name));
  const node = data?.results[0];
  if (data && !node) return <Empty title={t('deferred:node.unknown', { cluster, node: name })} icon={Server} />;
  return (
    <>
      <PageHeader title={t('deferred:node.title', { node: name })} note={node && <NodeBadge node={node} />}>
        {node && <CopyAs commands={commandsToSteerNode(node.excluded ? 'uncordon' : 'drain', cluster, name)} />}
        {node && <Steer node={node} isAsked={isAsked} onAsk={setAsked} />}
        <Anchor component={Link} to={`/fleet/${encodeURIComponent(cluster)}`} size="sm">
          {cluster}
        </Anchor>
      </PageHeader>
      <div className={classes['main']}>
        {!node && error && <Failed error={error} onRetry={() => void again()} />}
        {!node && !error && <Skeleton height={120} radius={8} aria-busy />}
        {isAsked && node && !node.excluded?.drains && <Effect node={node} there={there.data} />}
        {node && <NodeJobs node={node} there={there.data} error={there.error} onRetry={() => void there.refetch()} />}
      </div>
    </>
  );
}

interface SteerProps {
  node: Node;
  /** Whether the effect of a drain is shown, below which it can be confirmed. */
  isAsked: boolean;
  onAsk: (isAsked: boolean) => void;
}

function Steer({ node: { cluster, name, excluded }, isAsked, onAsk }: SteerProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const obstacle = useMay('cordon') ? '' : t('jobs.notAllowed');
  const { isSuccess, isFetching } = useQuery({ ...nodeDrainQuery(cluster, name), enabled: isAsked && !excluded?.drains });
  const unread = isSuccess && !isFetching ? '' : t('deferred:node.unread');
  const act = useMutation({
    mutationFn: (action: 'drain' | 'uncordon') => api.post(`${nodePath(cluster, name)}${action}/`),
    onSuccess: () => {
      onAsk(false);
      void refetch(client, 'clusters');
    },
  });
  const shared = { size: 'xs', loading: act.isPending, obstacle } as const;
  return (
    <Group gap="xs">
      <Refusal error={act.error} />
      {excluded && (
        <ActionButton {...shared} variant="default" onClick={() => act.mutate('uncordon')}>
          {t('deferred:node.uncordon', { node: name })}
        </ActionButton>
      )}
      {!excluded?.drains && (
        // One button in both cases: it keeps the focus, and a second click on its place confirms nothing.
        <ActionButton {...shared} variant="default" obstacle={isAsked ? '' : obstacle} onClick={() => onAsk(!isAsked)}>
          {isAsked ? t('common.cancel') : t('deferred:node.preview')}
        </ActionButton>
      )}
      {!excluded?.drains && isAsked && (
        <ActionButton {...shared} color="red.9" obstacle={obstacle || unread} onClick={() => act.mutate('drain')}>
          {t('deferred:node.now', { node: name })}
        </ActionButton>
      )}
    </Group>
  );
}

function Effect({ node: { cluster, name }, there }: { node: Node; there: NodeEvictions | undefined }) {
  const { t } = useTranslation('deferred');
  const answer = useQuery(nodeDrainQuery(cluster, name));
  const empty = { title: t('node.nothing'), body: t('node.nothingBody') };
  const notes = (listed: number, hidden: number) => {
    const leaving = listed + hidden;
    const changed = there !== undefined && there.jobs_left !== leaving;
    return [
      ...(hidden > 0 ? [t('node.unseen', { count: hidden })] : []),
      ...(changed ? [t('node.changed', { count: there.jobs_left })] : []),
      ...(leaving > 0 ? [t('node.how')] : []),
    ];
  };
  return <DrainEffect answer={answer} title={t('node.effect')} empty={empty} notes={notes} />;
}
