/** The session has ended while the page is open: sign in here and go on, nothing on the page is lost. */
import { Modal, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { connection } from '../api/connection.ts';
import type { Me } from '../api/types.ts';
import { fetchAllAgain, live, queryClient } from './client.ts';
import { SignInForm } from './SignInForm.tsx';

export function SignInDialog({ username }: { username: string }) {
  const { t } = useTranslation();
  const goOn = (me: Me) => {
    if (me.username !== username) queryClient.clear();
    connection.sessionOpened();
    live.reconnect();
    fetchAllAgain();
  };
  return (
    <Modal
      opened
      onClose={() => undefined}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      title={t('signIn.expiredTitle')}
      size={400}
    >
      <Text size="sm" mb="md">
        {t('signIn.expiredBody')}
      </Text>
      <SignInForm username={username} onSignedIn={goOn} />
    </Modal>
  );
}
