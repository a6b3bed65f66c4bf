/** How many jobs may leave a cluster within a minute: its label, which a fleet admin sets here; without it, the fleet's setting. */
import { Group, NumberInput, Skeleton, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { ClusterDetail } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { clusterQuery, evictionsQuery } from './queries.ts';

const PER_MINUTE = 'convoy.dev/evictions-per-minute';

export function DrainPace({ name }: { name: string }) {
  const { t } = useTranslation('deferred');
  const cluster = useQuery(clusterQuery(name));
  const { data, error, refetch: again } = useQuery(evictionsQuery(name));
  return (
    <Panel title={t('drain.paceTitle')}>
      {!data && error && <Failed error={error} onRetry={() => void again()} />}
      {!data && !error && <Skeleton height={48} aria-busy />}
      {data && (
        <>
          <Text size="sm">
            {t('drain.limit', { count: data.per_minute })} · {t('drain.jobsThere', { count: data.jobs_left })} ·{' '}
            {t('drain.minutes', { count: data.minutes_left })}
          </Text>
          {cluster.data && <Pace key={data.per_minute} cluster={cluster.data} now={data.per_minute} />}
        </>
      )}
    </Panel>
  );
}

function Pace({ cluster, now }: { cluster: ClusterDetail; now: number }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const may = useMay('label');
  const [pace, setPace] = useState<number | string>(now);
  const { [PER_MINUTE]: own, ...others } = cluster.labels;
  const set = useMutation({
    mutationFn: (labels: Record<string, string>) => api.patch(`clusters/${encodeURIComponent(cluster.name)}/`, { labels }),
    onSuccess: () => void refetch(client, 'clusters'),
  });
  const obstacle = may ? '' : t('jobs.notAllowed');
  const unready = Number(pace) >= 1 ? '' : t('deferred:drain.paceRange');
  return (
    <Group gap="xs" mt="sm" align="flex-end">
      <NumberInput
        size="xs"
        w={150}
        label={t('deferred:drain.paceLabel')}
        min={1}
        max={999_999_999}
        allowDecimal={false}
        clampBehavior="strict"
        value={pace}
        onChange={setPace}
      />
      <ActionButton
        size="xs"
        variant="default"
        obstacle={obstacle || unready}
        loading={set.isPending}
        onClick={() => set.mutate({ ...others, [PER_MINUTE]: String(pace) })}
      >
        {t('deferred:drain.paceSet')}
      </ActionButton>
      {own !== undefined && (
        <ActionButton size="xs" variant="subtle" obstacle={obstacle} onClick={() => set.mutate(others)}>
          {t('deferred:drain.paceDefault')}
        </ActionButton>
      )}
      <Refusal error={set.error} />
    </Group>
  );
}
