/** A node takes no new pods for a while, or takes them again: for everybody, by the fleet alone; its cluster is not touched. */
import { Button, Group, Modal, NumberInput, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type SubmitEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { Node } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { gpuMapQuery } from './queries.ts';

const HOURS = 24;

export function NodeExclude({ node }: { node: Node }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [isAsked, setAsked] = useState(false);
  const obstacle = useMay('label') ? '' : t('jobs.notAllowed');
  const change = useExclude(node);
  const action = node.excluded ? 'include' : 'exclude';
  return (
    <>
      <ActionButton
        size="compact-xs"
        variant="default"
        obstacle={obstacle}
        label={t(`deferred:exclude.${action}Node`, { node: node.name })}
        loading={change.isPending}
        onClick={() => (node.excluded ? change.mutate(null) : setAsked(true))}
      >
        {t(`deferred:exclude.${action}`)}
      </ActionButton>
      <Refusal error={change.error} />
      {isAsked && <Ask node={node} onClose={() => setAsked(false)} />}
    </>
  );
}

function useExclude({ cluster, name }: Node, onDone?: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (exclude: { hours: number; why: string } | null) =>
      api.patch(`clusters/${encodeURIComponent(cluster)}/nodes/${encodeURIComponent(name)}/`, { exclude }),
    onSuccess: () => {
      void refetch(client, 'clusters');
      onDone?.();
    },
  });
}

function Ask({ node, onClose }: { node: Node; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [hours, setHours] = useState<number | string>(HOURS);
  const [why, setWhy] = useState('');
  const change = useExclude(node, onClose);
  const exclude = (event: SubmitEvent) => {
    event.preventDefault();
    change.mutate({ hours: Number(hours), why });
  };
  return (
    <Modal opened onClose={onClose} title={t('deferred:exclude.title', { node: node.name })} closeButtonProps={{ 'aria-label': t('common.close') }}>
      <form onSubmit={exclude}>
        <Text size="sm">{t('deferred:exclude.body')}</Text>
        <Staying node={node} />
        <NumberInput mt="sm" label={t('deferred:exclude.hours')} min={0.1} max={8760} value={hours} onChange={setHours} data-autofocus />
        <TextInput mt="sm" label={t('deferred:exclude.why')} value={why} onChange={({ currentTarget: { value } }) => setWhy(value)} />
        <Refusal error={change.error} />
        <Group justify="flex-end" mt="lg" gap="xs">
          <Button variant="default" onClick={onClose}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={change.isPending} disabled={Number(hours) <= 0}>
            {t('deferred:exclude.exclude')}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}

/** The jobs that have GPUs of the node, which keep them. */
function Staying({ node: { cluster, name } }: { node: Node }) {
  const { t } = useTranslation('deferred');
  const { data } = useQuery(gpuMapQuery(cluster));
  const pods = data?.nodes.find((one) => one.name === name)?.pods ?? [];
  const jobs = [...new Set(pods.filter(({ id }) => id !== '').map((pod) => `${pod.namespace}/${pod.name}`))];
  if (jobs.length === 0) return null;
  return (
    <Text size="sm" mt="xs">
      {t('exclude.stay', { jobs: jobs.join(', ') })}
    </Text>
  );
}
