/** One action on many jobs: what it would do, then what it did, each with the jobs it is refused for and why. */
import { Button, Group, Modal, Skeleton, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import { refetch } from '../api/refetch.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Failed } from '../ui/Message.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { commandsToActOnMany } from './commands.ts';
import { actOnMany } from './queries.ts';
import type { Action } from './states.ts';
import type { BulkDone } from './types.ts';
import classes from './ListTools.module.css';

interface Props {
  action: Action;
  ids: string[];
  onClose: (done: boolean) => void;
}

export function BulkDialog({ action, ids, onClose }: Props) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const preview = useQuery({ queryKey: ['bulk', action, ids], queryFn: () => actOnMany(action, ids, true), gcTime: 0 });
  const act = useMutation({
    mutationFn: () => actOnMany(action, ids, false),
    onSuccess: () => void refetch(client, 'jobs'),
  });
  const result = act.data ?? preview.data;
  const close = () => onClose(act.isSuccess);
  return (
    <Modal opened onClose={close} title={t(`jobs.bulk.title.${action}`, { count: ids.length })} size={560} closeButtonProps={{ 'aria-label': t('common.close') }}>
      {preview.error && <Failed error={preview.error} onRetry={() => void preview.refetch()} />}
      {result ? <BulkResult result={result} applied={act.isSuccess} /> : <Skeleton height={60} aria-busy />}
      <Refusal error={act.error} />
      <Group justify="flex-end" mt="lg" gap="xs">
        {!act.isSuccess && <CopyAs commands={commandsToActOnMany(action, ids)} />}
        <Button variant="default" onClick={close}>
          {t(act.isSuccess ? 'common.close' : 'common.cancel')}
        </Button>
        {!act.isSuccess && (
          <Button
            {...(action === 'delete' ? { color: 'red' } : {})}
            loading={act.isPending}
            disabled={!preview.data?.done}
            onClick={() => act.mutate()}
          >
            {t(`jobs.action.${action}`)}
          </Button>
        )}
      </Group>
    </Modal>
  );
}

function BulkResult({ result, applied }: { result: BulkDone; applied: boolean }) {
  const { t } = useTranslation();
  const refused = result.results.filter(({ done }) => !done);
  const gpus = result.results.reduce((sum, each) => sum + (each.done ? each.gpus : 0), 0);
  const numbers = { done: result.done, refused: result.refused, gpus };
  return (
    <>
      <Text size="sm" role="status">
        {t(applied ? 'jobs.bulk.did' : 'jobs.bulk.would', numbers)}
      </Text>
      {refused.length > 0 && (
        <ul className={classes['refused']} aria-label={t('jobs.bulk.refused')}>
          {refused.map(({ id, namespace, name, message }) => (
            <li key={id}>
              <strong>{name ? `${namespace}/${name}` : id}</strong> <ServerText text={message} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
