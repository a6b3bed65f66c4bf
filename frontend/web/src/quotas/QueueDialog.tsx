/** Asks why before a queue is held, drained, stopped or opened: everybody will see the answer. */
import { Button, Group, Modal, Text, TextInput } from '@mantine/core';
import { type SubmitEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { QuotaNode } from '../api/types.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { commandsToSwitch } from './commands.ts';
import { type QueueVerb, useQueueVerb } from './queries.ts';

interface Props {
  node: QuotaNode;
  verb: QueueVerb;
  onClose: () => void;
}

export function QueueDialog({ node, verb, onClose }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [comment, setComment] = useState('');
  const { mutate, isPending, error } = useQueueVerb(node.queue, verb, onClose);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    mutate(comment);
  };
  return (
    <Modal opened onClose={onClose} title={t('deferred:quotas.askQueue', { verb: t(`deferred:quotas.verb.${verb}`), path: node.path })} size={460} closeButtonProps={{ 'aria-label': t('common.close') }}>
      <form onSubmit={submit}>
        <Text size="sm" mb="sm">
          {t(`deferred:quotas.verbNote.${verb}`)}
        </Text>
        <TextInput
          label={t('deferred:quotas.comment')}
          description={t('deferred:quotas.commentNote')}
          value={comment}
          maxLength={500}
          onChange={(event) => setComment(event.currentTarget.value)}
          data-autofocus
        />
        <Refusal error={error} />
        <Group justify="flex-end" mt="lg" gap="xs">
          <CopyAs commands={commandsToSwitch(verb, node, comment)} />
          <Button variant="default" onClick={onClose}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={isPending} {...(verb === 'stop' ? { color: 'red' } : {})}>
            {t(`deferred:quotas.verb.${verb}`)}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
