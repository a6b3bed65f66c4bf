/** Who is signed in, with which roles, and the way out. */
import { Button, Menu } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { CircleUserRound, LogOut } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { session } from '../api/me.ts';
import type { Me, Role } from '../api/types.ts';

export function AccountMenu({ me }: { me: Me }) {
  const { t } = useTranslation();
  const signOut = useMutation({ mutationFn: session.close, onSuccess: () => window.location.assign('/') });
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          h={30}
          leftSection={<CircleUserRound size={17} aria-hidden />}
          aria-label={t('account.title', { username: me.username })}
        >
          {me.username}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{me.roles.map(roleText).join(', ') || t('account.noRoles')}</Menu.Label>
        <Menu.Item leftSection={<LogOut size={15} aria-hidden />} onClick={() => signOut.mutate()}>
          {t('account.signOut')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function roleText({ role, namespace }: Role): string {
  return namespace ? `${role} (${namespace})` : role;
}
