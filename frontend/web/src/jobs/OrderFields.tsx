/** The value that an order needs: a priority, a queue, or a size. */
import { Group, NumberInput, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { treeQuery } from '../quotas/queries.ts';
import type { OrderName, OrderValues } from './orders.ts';

interface Props {
  action: OrderName;
  roles: string[];
  values: OrderValues;
  onChange: (values: OrderValues) => void;
}

export function OrderFields({ action, roles, values, onChange }: Props) {
  const { t } = useTranslation('deferred');
  const set = (part: Partial<OrderValues>) => onChange({ ...values, ...part });
  if (action === 'priority') {
    return (
      <NumberInput
        size="xs"
        w={200}
        allowDecimal={false}
        data-autofocus
        label={t('order.priority')}
        description={t('order.priorityNote')}
        value={values.priority}
        onChange={(priority) => set({ priority: String(priority) })}
      />
    );
  }
  if (action === 'move') return <Queues value={values.queue} onChange={(queue) => set({ queue })} />;
  if (action !== 'scale') return null;
  return (
    <Group gap="sm" align="end">
      {roles.length > 1 ? (
        <Select size="xs" w={180} label={t('order.role')} data={roles} value={values.role} allowDeselect={false} onChange={(role) => set({ role: role ?? '' })} />
      ) : (
        roles.length === 0 && (
          <TextInput size="xs" w={180} label={t('order.role')} value={values.role} onChange={({ currentTarget: { value } }) => set({ role: value })} />
        )
      )}
      <NumberInput
        size="xs"
        w={120}
        min={0}
        allowDecimal={false}
        allowNegative={false}
        data-autofocus
        label={t('order.replicas')}
        value={values.replicas}
        onChange={(replicas) => set({ replicas: String(replicas) })}
      />
    </Group>
  );
}

/** The leaves of the quota tree: only those have a queue that jobs wait in. */
function Queues({ value, onChange }: { value: string; onChange: (queue: string) => void }) {
  const { t } = useTranslation('deferred');
  const { data, error } = useQuery({ ...treeQuery, retry: false });
  const leaves = data?.nodes.filter(({ leaf }) => leaf).map(({ path }) => path) ?? [];
  return (
    <Select
      size="xs"
      searchable
      data-autofocus
      label={t('order.queue')}
      error={error ? t('order.noTree') : undefined}
      data={leaves}
      value={value || null}
      onChange={(queue) => onChange(queue ?? '')}
    />
  );
}
