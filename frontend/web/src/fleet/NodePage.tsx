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
      {!excluded?.drains && !isAsked && (
        <ActionButton {...shared} variant="default" onClick={() => onAsk(true)}>
          {t('deferred:node.preview')}
        </ActionButton>
      )}
      {!excluded?.drains && isAsked && (
        <>
          <ActionButton {...shared} variant="default" obstacle="" onClick={() => onAsk(false)}>
            {t('common.cancel')}
          </ActionButton>
          <ActionButton {...shared} color="red.9" onClick={() => act.mutate('drain')}>
            {t('deferred:node.now', { node: name })}
          </ActionButton>
        </>
      )}
    </Group>
  );
}

function Effect({ node: { cluster, name }, there }: { node: Node; there: NodeEvictions | undefined }) {
  const { t } = useTranslation('deferred');
  const answer = useQuery(nodeDrainQuery(cluster, name));
  const empty = { title: t('node.nothing'), body: t('node.nothingBody') };
  const notes = (leaving: number) => {
    const unseen = Math.max((there?.jobs_left ?? 0) - leaving, 0);
    return [...(unseen > 0 ? [t('node.unseen', { count: unseen })] : []), ...(leaving + unseen > 0 ? [t('node.how')] : [])];
  };
  return <DrainEffect answer={answer} title={t('node.effect')} empty={empty} notes={notes} />;
}
