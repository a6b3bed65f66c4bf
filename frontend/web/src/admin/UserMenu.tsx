/** What may be done to a user: a role, a password, disabled and enabled again; each in a dialog of its own. */
import { ActionIcon, Menu } from '@mantine/core';
import { Ban, EllipsisVertical, KeyRound, ShieldOff, ShieldPlus, UserCheck, type LucideIcon } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { User } from '../api/types.ts';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsOnUser } from './commands.ts';
import { useAccessChange } from './queries.ts';
import { GrantRole, SetPassword } from './UserForms.tsx';
import classes from './admin.module.css';

type Act = 'disable' | 'enable' | 'revoke-tokens';
type Verb = 'grant' | 'password' | Act;

const ICONS: Record<Verb, LucideIcon> = {
  grant: ShieldPlus,
  password: KeyRound,
  'revoke-tokens': ShieldOff,
  disable: Ban,
  enable: UserCheck,
};

export function UserMenu({ user, lastAdmin }: { user: User; lastAdmin: boolean }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [asked, setAsked] = useState<Verb | null>(null);
  const close = () => setAsked(null);
  const verbs: Verb[] = ['grant', 'password', 'revoke-tokens', user.active ? 'disable' : 'enable'];
  return (
    <>
      <Menu position="bottom-end" width={280}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t('deferred:access.actionsFor', { user: user.username })}>
            <EllipsisVertical size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {verbs.map((verb) => {
            const obstacle = verb === 'disable' && lastAdmin ? t('deferred:access.lastAdmin') : '';
            const Icon = ICONS[verb];
            return (
              <Menu.Item
                key={verb}
                aria-disabled={obstacle !== ''}
                data-disabled={obstacle !== '' || undefined}
                closeMenuOnClick={obstacle === ''}
                leftSection={<Icon size={15} aria-hidden />}
                onClick={() => obstacle === '' && setAsked(verb)}
              >
                {t(`deferred:access.verb.${verb}`)}
                {obstacle && <span className={classes['why']}>{obstacle}</span>}
              </Menu.Item>
            );
          })}
        </Menu.Dropdown>
      </Menu>
      {asked === 'grant' && <GrantRole user={user.username} onClose={close} />}
      {asked === 'password' && <SetPassword user={user.username} onClose={close} />}
      {asked && asked !== 'grant' && asked !== 'password' && <Confirmed user={user.username} verb={asked} onClose={close} />}
    </>
  );
}

function Confirmed({ user, verb, onClose }: { user: string; verb: Act; onClose: () => void }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { t: asked } = useTranslation('deferred', { useSuspense: false });
  const act = useAccessChange(() => api.post(`users/${encodeURIComponent(user)}/${verb}/`), onClose);
  return (
    <ConfirmDialog
      title={asked(`user.ask.${verb}`, { user })}
      body={asked(`user.effect.${verb}`, { user })}
      action={t(`deferred:access.verb.${verb}`)}
      dangerous={verb !== 'enable'}
      commands={commandsOnUser(verb, user)}
      pending={act.isPending}
      error={act.error}
      onConfirm={() => act.mutate(undefined)}
      onClose={onClose}
    />
  );
}
