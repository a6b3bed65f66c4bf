/** Asks before something that is hard to undo; stays open with the server's words when it was refused. */
import { Button, Group, Modal, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { CopyAs } from './CopyAs.tsx';
import type { Commands } from './commands.ts';
import { Refusal } from './Refusal.tsx';

interface Props {
  title: string;
  body: string;
  action: string;
  dangerous?: boolean;
  /** The same on a command line. */
  commands?: Commands;
  pending: boolean;
  error: Error | null;
  onConfirm: () => void;
  onClose: () => void;
}

export function ConfirmDialog({ title, body, action, dangerous = false, commands, pending, error, onConfirm, onClose }: Props) {
  const { t } = useTranslation();
  return (
    <Modal opened onClose={onClose} title={title} size={440} closeButtonProps={{ 'aria-label': t('common.close') }}>
      <Text size="sm">{body}</Text>
      <Refusal error={error} />
      <Group justify="flex-end" mt="lg" gap="xs">
        {commands && <CopyAs commands={commands} />}
        <Button variant="default" onClick={onClose}>
          {t('common.cancel')}
        </Button>
        <Button {...(dangerous ? { color: 'red' } : {})} loading={pending} onClick={onConfirm} data-autofocus>
          {action}
        </Button>
      </Group>
    </Modal>
  );
}
