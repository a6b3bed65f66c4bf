/** A cluster's taints: which jobs it keeps out or sends away. People's can be added and removed; the others say whose they are. */
import { ActionIcon, Group, Select, Skeleton, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { type SubmitEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { Cluster, ClusterDetail } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { clusterQuery } from './queries.ts';
import { isOfHealth, isOfPeople } from './steering.ts';
import classes from './Taints.module.css';

type Taint = Cluster['taints'][number];

const EFFECTS: Taint['effect'][] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function Taints({ name }: { name: string }) {
  const { t, ready } = useTranslation('deferred', { useSuspense: false });
  const { data, error, refetch: again } = useQuery(clusterQuery(name));
  if (!ready) return <Skeleton height={80} radius={8} aria-busy />;
  return (
    <Panel title={t('taints.title')}>
      {!data && error && <Failed error={error} onRetry={() => void again()} />}
      {!data && !error && <Skeleton height={40} aria-busy />}
      {data && <TaintList cluster={data} />}
    </Panel>
  );
}

function TaintList({ cluster }: { cluster: ClusterDetail }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const client = useQueryClient();
  const may = useMay('label');
  const set = useMutation({
    mutationFn: (taints: Taint[]) => api.patch(`clusters/${encodeURIComponent(cluster.name)}/`, { taints: taints.filter((taint) => !isOfHealth(taint)) }),
    // Until they are shown, another change would start from the list before this one, and take it back.
    onSuccess: () => refetch(client, 'clusters'),
  });
  const [added, setAdded] = useState(0);
  const { taints } = cluster;
  return (
    <>
      {taints.length === 0 && <p className="cv-soft">{t('deferred:taints.none')}</p>}
      <ul className={classes['list']}>
        {taints.map((taint) => (
          <li key={textOf(taint)}>
            <code className="cv-mono">{textOf(taint)}</code>
            {isOfPeople(taint) && may ? (
              <ActionIcon
                variant="subtle"
                color="gray"
                size="sm"
                aria-label={t('deferred:taints.remove', { taint: textOf(taint) })}
                disabled={set.isPending}
                onClick={() => set.mutate(taints.filter((each) => each !== taint))}
              >
                <X size={14} aria-hidden />
              </ActionIcon>
            ) : (
              !isOfPeople(taint) && <span className="cv-soft">{t('deferred:taints.kept')}</span>
            )}
          </li>
        ))}
      </ul>
      <AddTaint
        key={added}
        obstacle={may ? '' : t('jobs.notAllowed')}
        pending={set.isPending}
        onAdd={(taint) => set.mutate([...taints, taint], { onSuccess: () => setAdded(added + 1) })}
      />
      <Refusal error={set.error} />
    </>
  );
}

function AddTaint({ obstacle, pending, onAdd }: { obstacle: string; pending: boolean; onAdd: (taint: Taint) => void }) {
  const { t } = useTranslation('deferred');
  const [taint, setTaint] = useState<Taint>({ key: '', value: '', effect: 'NoSchedule' });
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    if (obstacle === '' && !pending && taint.key !== '') onAdd(taint);
  };
  return (
    <form onSubmit={add}>
      <Group gap="xs" mt="sm" align="flex-end">
        <TextInput size="xs" label={t('taints.key')} value={taint.key} onChange={({ currentTarget: { value: key } }) => setTaint({ ...taint, key })} />
        <TextInput size="xs" label={t('taints.value')} value={taint.value ?? ''} onChange={({ currentTarget: { value } }) => setTaint({ ...taint, value })} />
        <Select
          size="xs"
          label={t('taints.effect')}
          data={EFFECTS.map((value) => ({ value, label: `${value}: ${t(`taints.effects.${value}`)}` }))}
          w={280}
          allowDeselect={false}
          value={taint.effect}
          onChange={(value) => setTaint({ ...taint, effect: EFFECTS.find((each) => each === value) ?? 'NoSchedule' })}
        />
        <ActionButton size="xs" type="submit" variant="default" loading={pending} obstacle={obstacle || (taint.key ? '' : t('taints.keyFirst'))}>
          {t('taints.add')}
        </ActionButton>
      </Group>
    </form>
  );
}

function textOf({ key, value, effect }: Taint): string {
  return `${key}${value ? `=${value}` : ''}:${effect}`;
}
