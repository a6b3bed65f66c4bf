/** One order for one job or many: the value it needs, what would become of each job by name, then what did. */
import { Button, Group, Modal, Skeleton } from '@mantine/core';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { refetch } from '../api/refetch.ts';
import { useSettled } from '../quotas/useSettled.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { commandsToOrder } from './commands.ts';
import { NO_VALUES, type OrderName, type OrderValues, valuesOf } from './orders.ts';
import { OrderFields } from './OrderFields.tsx';
import { OrderResult } from './OrderResult.tsx';
import { order } from './queries.ts';
import classes from './ListTools.module.css';

const REST_MS = 250;

interface Props {
  action: OrderName;
  ids: string[];
  /** Of a single job: its name. */
  name?: string;
  roles?: string[];
  onClose: (done: boolean) => void;
}

export function OrderDialog({ action, ids, name, roles = [], onClose }: Props) {
  const { t } = useTranslation('deferred');
  const main = useTranslation().t;
  const client = useQueryClient();
  const [values, setValues] = useState<OrderValues>({ ...NO_VALUES, role: roles[0] ?? '' });
  const body = valuesOf(action, values);
  const asked = useSettled(JSON.stringify(body), REST_MS);
  const fresh = asked === JSON.stringify(body);
  const preview = useQuery({
    queryKey: ['order', action, ids, asked],
    queryFn: () => order(action, ids, body ?? {}, true),
    enabled: body !== null && fresh,
    placeholderData: body === null ? undefined : keepPreviousData,
    retry: false,
    gcTime: 0,
  });
  const act = useMutation({
    mutationFn: () => order(action, ids, body ?? {}, false),
    onSuccess: () => void refetch(client, 'jobs'),
  });
  const result = act.data ?? (body === null ? undefined : preview.data);
  const current = fresh && !preview.isPlaceholderData && !preview.isFetching;
  const close = () => onClose(act.isSuccess);
  const title = name ? t(`order.one.${action}`, { name }) : t(`order.many.${action}`, { count: ids.length });
  return (
    <Modal opened onClose={close} title={title} size={600} closeButtonProps={{ 'aria-label': main('common.close') }} classNames={{ title: classes['title'] ?? '' }}>
      <p className={classes['note']}>{t(`order.note.${action}`)}</p>
      {!act.isSuccess && <OrderFields action={action} roles={roles} values={values} onChange={setValues} />}
      {preview.error && current && <Failed error={preview.error} onRetry={() => void preview.refetch()} />}
      {result ? (
        <OrderResult result={result} applied={act.isSuccess} stale={!current && !act.isSuccess} />
      ) : (
        body !== null && !preview.error && <Skeleton height={60} aria-busy />
      )}
      <Refusal error={act.error} />
      <Group justify="flex-end" mt="lg" gap="xs">
        {!act.isSuccess && body !== null && <CopyAs commands={commandsToOrder(action, ids, body)} />}
        <Button variant="default" onClick={close}>
          {main(act.isSuccess ? 'common.close' : 'common.cancel')}
        </Button>
        {!act.isSuccess && (
          <Button
            {...(action === 'delete' || action === 'preempt' ? { color: 'red' } : {})}
            loading={act.isPending}
            disabled={!current || !preview.data?.done || body === null}
            onClick={() => act.mutate()}
          >
            {main(`jobs.action.${action}`)}
          </Button>
        )}
      </Group>
    </Modal>
  );
}
