/** The roles of a user, each taken away after a question. */
import { X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { User } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsToRevoke } from './commands.ts';
import classes from './admin.module.css';
import { useAccessChange } from './queries.ts';

export function HeldRoles({ user, lastAdmin }: { user: User; lastAdmin: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <div className={classes['grants']}>
      {user.superuser && <span title={t('deferred:access.superuserNote')}>{t('deferred:access.superuser')}</span>}
      {user.roles.map((held) => (
        <HeldRole key={held.id} user={user.username} held={held} keep={lastAdmin && held.role === 'fleet-admin' && held.namespace === ''} />
      ))}
    </div>
  );
}

function HeldRole({ user, held, keep }: { user: string; held: User['roles'][number]; keep: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [asked, setAsked] = useState(false);
  const role = held.namespace ? t('deferred:access.in', { role: held.role, namespace: held.namespace }) : held.role;
  const take = useAccessChange(() => api.delete(`grants/${held.id}/`), () => setAsked(false));
  const name = t('deferred:access.takeBack', { user, role });
  return (
    <>
      <ActionButton
        size="compact-xs"
        variant="light"
        color="gray"
        rightSection={<X size={12} aria-hidden />}
        label={name}
        obstacle={keep ? t('deferred:access.lastAdmin') : ''}
        onClick={() => setAsked(true)}
      >
        {role}
      </ActionButton>
      {asked && (
        <ConfirmDialog
          title={`${name}?`}
          body={t('deferred:access.takeBackBody', { user })}
          action={t('deferred:access.takeBackAction')}
          dangerous
          commands={commandsToRevoke(held.id)}
          pending={take.isPending}
          error={take.error}
          onConfirm={() => take.mutate(undefined)}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}
