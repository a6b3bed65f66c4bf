/** The saved views of a list, and a form that saves the one that is shown. */
import { ActionIcon, Button, Group, Select, Skeleton, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Trash2, Users } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { meQuery } from '../api/me.ts';
import { Failed } from '../ui/Message.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { type ListName, useForgetView, useSaveView, viewsQuery } from './queries.ts';

interface Props {
  list: ListName;
  search: string;
  onOpen: (search: string) => void;
}

export function ViewList({ list, search, onOpen }: Props) {
  const { t } = useTranslation('deferred');
  const { data: me } = useQuery(meQuery);
  const { data, error, refetch } = useQuery(viewsQuery(list));
  const forget = useForgetView(list);
  if (error && !data) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={60} aria-busy />;
  return (
    <>
      {data.results.map(({ id, name, search: saved, shared, namespace, user }) => (
        <Group key={id} gap={4} wrap="nowrap">
          <Button size="xs" variant="subtle" color="gray" justify="start" flex={1} onClick={() => onOpen(saved)}>
            {name}
          </Button>
          {shared && (
            <span className="cv-soft" title={t('views.by', { user })}>
              <Users size={12} aria-hidden /> {namespace || t('views.all')}
            </span>
          )}
          {(user === me?.username || me?.can['apply']) && (
            <ActionIcon variant="subtle" color="gray" aria-label={t('views.forget', { name })} loading={forget.isPending && forget.variables === id} onClick={() => forget.mutate(id)}>
              <Trash2 size={14} />
            </ActionIcon>
          )}
        </Group>
      ))}
      <Refusal error={forget.error} />
      <SaveForm list={list} search={search} />
    </>
  );
}

const PRIVATE = '';
const ALL = '*';

function SaveForm({ list, search }: Omit<Props, 'onOpen'>) {
  const { t } = useTranslation('deferred');
  const main = useTranslation().t;
  const [name, setName] = useState('');
  const [whom, setWhom] = useState(PRIVATE);
  const save = useSaveView(list, () => setName(''));
  const places = useSharePlaces();
  const send = () => {
    if (!name.trim()) return;
    save.mutate({ name: name.trim(), search, shared: whom !== PRIVATE, namespace: whom === ALL ? '' : whom });
  };
  const options = [{ value: PRIVATE, label: t('views.private') }, ...places.map((value) => ({ value, label: value === ALL ? t('views.shareAll') : t('views.share', { namespace: value }) }))];
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Group gap={6} pt={6} wrap="nowrap">
        <TextInput size="xs" flex={1} maxLength={63} aria-label={main('list.viewName')} placeholder={main('list.viewName')} value={name} onChange={({ currentTarget: { value } }) => setName(value)} />
        <Button size="xs" type="submit" loading={save.isPending} disabled={!name.trim()}>
          {main('list.saveView')}
        </Button>
      </Group>
      {places.length > 0 && (
        <Select size="xs" mt={6} aria-label={t('views.whom')} comboboxProps={{ withinPortal: false }} allowDeselect={false} data={options} value={whom} onChange={(value) => setWhom(value ?? PRIVATE)} />
      )}
      <Refusal error={save.error} />
    </form>
  );
}

/** Where the reader's roles let a view be shared: namespaces, and everywhere. */
function useSharePlaces(): string[] {
  const { data: me } = useQuery(meQuery);
  const writing = me?.roles.filter(({ role }) => role === 'editor' || role === 'fleet-admin') ?? [];
  const namespaces = writing.map(({ namespace }) => namespace || ALL);
  return [...new Set(namespaces)].sort();
}
