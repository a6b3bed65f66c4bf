/** New credentials for a cluster that is in: its kubeconfig is pasted; the server checks that it leads to the same cluster. */
import { Button, Group, Modal, Textarea } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import { useMay } from '../api/me.ts';
import type { Cluster } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ErrorText } from '../ui/ServerText.tsx';

export function Renew({ cluster }: { cluster: Cluster }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const may = useMay('join');
  return (
    <>
      <ActionButton size="xs" variant="default" obstacle={may ? '' : t('jobs.notAllowed')} onClick={() => setOpen(true)}>
        {t('cluster.renew.open')}
      </ActionButton>
      {isOpen && <RenewDialog cluster={cluster} onClose={() => setOpen(false)} />}
    </>
  );
}

function RenewDialog({ cluster: { name }, onClose }: { cluster: Cluster; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [kubeconfig, setKubeconfig] = useState('');
  const renew = useMutation({
    mutationFn: () => api.put<Cluster>(`clusters/${encodeURIComponent(name)}/credentials/`, { kubeconfig }),
    onSuccess: () => {
      void refetch(client, 'clusters');
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={t('cluster.renew.title', { name })} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          renew.mutate();
        }}
      >
        <Textarea
          label={t('join.kubeconfig')}
          description={t('cluster.renew.body')}
          rows={12}
          spellCheck={false}
          value={kubeconfig}
          error={renew.error && <ErrorText error={renew.error} />}
          onChange={({ currentTarget: { value } }) => setKubeconfig(value)}
          data-autofocus
        />
        <Group justify="flex-end" mt="md" gap="xs">
          <Button variant="default" onClick={onClose}>
            {t('common.cancel')}
          </Button>
          <Button type="submit" disabled={kubeconfig.trim() === ''} loading={renew.isPending}>
            {t('cluster.renew.action')}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
