/** A cluster leaves the fleet: refused, with the reasons, while jobs or objects of the fleet are there. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { Cluster } from '../api/types.ts';
import { useGo } from '../scope/useScope.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsToDetach } from './commands.ts';
import { clustersQuery } from './queries.ts';
import { detaching } from './steering.ts';

export function Detach({ cluster: { name } }: { cluster: Cluster }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const go = useGo();
  const client = useQueryClient();
  const [isAsked, setAsked] = useState(false);
  const may = useMay('detach');
  const detach = useMutation({
    mutationKey: detaching(name),
    mutationFn: () => api.delete(`clusters/${encodeURIComponent(name)}/`),
    onSuccess: () => {
      // At once, so that nothing on this page is asked of a cluster that is gone.
      client.setQueryData(clustersQuery.queryKey, (page) => page && { ...page, results: page.results.filter((one) => one.name !== name) });
      go('/fleet');
      void refetch(client, 'clusters');
    },
  });
  return (
    <>
      <ActionButton size="xs" variant="default" obstacle={may ? '' : t('jobs.notAllowed')} onClick={() => setAsked(true)}>
        {t('deferred:detach.open')}
      </ActionButton>
      {isAsked && (
        <ConfirmDialog
          title={t('deferred:detach.title', { name })}
          body={t('deferred:detach.body')}
          action={t('deferred:detach.action')}
          dangerous
          commands={commandsToDetach(name)}
          pending={detach.isPending}
          error={detach.error}
          onConfirm={() => detach.mutate()}
          onClose={() => {
            detach.reset();
            setAsked(false);
          }}
        />
      )}
    </>
  );
}
