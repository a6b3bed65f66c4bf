/** Dialogs that ask for something about a user: a new one, a password, a role. */
import { Button, Group, Modal, PasswordInput, Select, Text, TextInput } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { Grant, User } from '../api/types.ts';
import type { Commands } from '../ui/commands.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { commandsOnUser, commandsToGrant } from './commands.ts';
import { useAccessChange } from './queries.ts';

const ROLES = ['viewer', 'editor', 'quota-admin', 'fleet-admin'];

interface FormProps {
  title: string;
  note: string;
  action: string;
  commands: Commands;
  ready: boolean;
  pending: boolean;
  error: Error | null;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

function FormDialog({ title, note, action, commands, ready, pending, error, onSubmit, onClose, children }: FormProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <Modal opened onClose={onClose} title={title} size={460} closeButtonProps={{ 'aria-label': t('common.close') }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <Text size="sm" mb="sm">
          {note}
        </Text>
        {children}
        <Refusal error={error} />
        <Group justify="flex-end" mt="lg" gap="xs">
          <CopyAs commands={commands} />
          <Button variant="default" onClick={onClose}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" loading={pending} disabled={!ready}>
            {action}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}

export function CreateUser({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const create = useAccessChange(() => api.post<User>('users/', { username, password }), onClose);
  return (
    <FormDialog
      title={t('deferred:access.create')}
      note={t('deferred:access.createNote')}
      action={t('deferred:access.create')}
      commands={commandsOnUser('create', username || 'NAME')}
      ready={username.trim() !== ''}
      pending={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate(undefined)}
      onClose={onClose}
    >
      <TextInput label={t('signIn.username')} value={username} autoComplete="off" data-autofocus onChange={(event) => setUsername(event.currentTarget.value)} />
      <PasswordInput
        mt="sm"
        label={t('deferred:access.optionalPassword')}
        description={t('deferred:access.passwordNote')}
        value={password}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ 'aria-label': t('signIn.showPassword') }}
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

export function SetPassword({ user, onClose }: { user: string; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { t: asked } = useTranslation('deferred', { useSuspense: false });
  const [password, setPassword] = useState('');
  const set = useAccessChange(() => api.post(`users/${encodeURIComponent(user)}/password/`, { password }), onClose);
  return (
    <FormDialog
      title={asked('user.ask.password', { user })}
      note={asked('user.effect.password')}
      action={t('deferred:access.verb.password')}
      commands={commandsOnUser('password', user)}
      ready={password !== ''}
      pending={set.isPending}
      error={set.error}
      onSubmit={() => set.mutate(undefined)}
      onClose={onClose}
    >
      <PasswordInput
        label={t('deferred:access.newPassword')}
        description={t('deferred:access.passwordNote')}
        value={password}
        autoComplete="new-password"
        data-autofocus
        visibilityToggleButtonProps={{ 'aria-label': t('signIn.showPassword') }}
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

export function GrantRole({ user, onClose }: { user: string; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { t: asked } = useTranslation('deferred', { useSuspense: false });
  const [wanted, setWanted] = useState({ user, role: 'viewer', namespace: '' });
  const grant = useAccessChange(() => api.post<Grant>('grants/', wanted), onClose);
  return (
    <FormDialog
      title={asked('user.ask.grant', { user })}
      note={asked('user.effect.grant')}
      action={t('deferred:access.give')}
      commands={commandsToGrant(wanted)}
      ready
      pending={grant.isPending}
      error={grant.error}
      onSubmit={() => grant.mutate(undefined)}
      onClose={onClose}
    >
      <Select label={t('deferred:access.role')} data={ROLES} value={wanted.role} allowDeselect={false} data-autofocus onChange={(role) => setWanted({ ...wanted, role: role ?? 'viewer' })} />
      <TextInput
        mt="sm"
        label={t('deferred:access.namespace')}
        placeholder={t('deferred:access.everywhere')}
        value={wanted.namespace}
        onChange={({ currentTarget: { value } }) => setWanted({ ...wanted, namespace: value })}
      />
    </FormDialog>
  );
}
