/** A cluster joins: its kubeconfig is pasted, looked at check by check, and only then taken in. */
import { Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { refetch } from '../api/refetch.ts';
import { useMay } from '../api/me.ts';
import type { Checks, Cluster } from '../api/types.ts';
import { useGo } from '../scope/useScope.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { CopyAs } from '../ui/CopyAs.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { CheckList } from './CheckList.tsx';
import { commandsToJoin } from './commands.ts';
import classes from './JoinPage.module.css';

interface Wanted {
  name: string;
  kubeconfig: string;
}

export default function JoinPage() {
  const { t } = useTranslation();
  const { t: deferred } = useTranslation('deferred');
  const go = useGo();
  const client = useQueryClient();
  const may = useMay('join');
  const [wanted, setWanted] = useState<Wanted>({ name: '', kubeconfig: '' });
  const check = useMutation({ mutationFn: (given: Wanted) => api.post<Checks>('clusters/check/', given) });
  const join = useMutation({
    mutationFn: (given: Wanted) => api.post<Cluster>('clusters/', given),
    onSuccess: ({ name }) => {
      void refetch(client, 'clusters');
      go(`/fleet/${encodeURIComponent(name)}`);
    },
  });
  const change = (part: Partial<Wanted>) => {
    setWanted({ ...wanted, ...part });
    check.reset();
    join.reset();
  };
  const filled = wanted.name.trim() !== '' && wanted.kubeconfig.trim() !== '';
  const refused = may ? '' : t('jobs.notAllowed');
  return (
    <>
      <PageHeader title={t('join.title')}>
        <CopyAs commands={commandsToJoin(wanted.name)} />
      </PageHeader>
      <div className={classes['columns']}>
        <Panel title={deferred('join.step1')}>
          <form
            className={classes['form']}
            onSubmit={(event) => {
              event.preventDefault();
              if (may && filled) check.mutate(wanted);
            }}
          >
            <TextInput
              label={deferred('join.name')}
              description={deferred('join.nameHint')}
              value={wanted.name}
              onChange={({ currentTarget: { value } }) => change({ name: value })}
            />
            <Textarea
              label={t('join.kubeconfig')}
              description={deferred('join.kubeconfigHint')}
              rows={14}
              spellCheck={false}
              classNames={{ input: classes['file'] ?? '' }}
              value={wanted.kubeconfig}
              onChange={({ currentTarget: { value } }) => change({ kubeconfig: value })}
            />
            <ActionButton
              type="submit"
              variant="default"
              obstacle={refused || (filled ? '' : deferred('join.fillFirst'))}
              loading={check.isPending}
            >
              {deferred('join.check')}
            </ActionButton>
          </form>
        </Panel>
        <Panel title={deferred('join.step2')}>
          <CheckList checks={check.data?.checks} busy={check.isPending} error={join.error ?? check.error} />
          <ActionButton
            mt="md"
            obstacle={refused || (check.data?.ok ? '' : deferred('join.checkFirst'))}
            loading={join.isPending}
            onClick={() => join.mutate(wanted)}
          >
            {deferred('join.join')}
          </ActionButton>
        </Panel>
      </div>
    </>
  );
}
