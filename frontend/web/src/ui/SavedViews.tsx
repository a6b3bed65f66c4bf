/**
 * Views of a list kept under a name in this browser: an address each. A view is shared by sharing its address.
 *
 * A dialog, for a menu may hold no field to type in.
 */
import { ActionIcon, Button, Group, Popover, TextInput } from '@mantine/core';
import { Bookmark, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { readViews, type View, writeViews } from './views.ts';

interface Props {
  /** The list the views are of. */
  list: string;
  search: string;
  onOpen: (search: string) => void;
}

export function SavedViews({ list, search, onOpen }: Props) {
  const { t } = useTranslation();
  const [views, setViews] = useState(() => readViews(list));
  const [name, setName] = useState('');
  const [isOpen, setOpen] = useState(false);
  const keep = (next: View[]) => {
    writeViews(list, next);
    setViews(next);
  };
  const save = () => {
    if (!name.trim()) return;
    keep([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), search }]);
    setName('');
  };
  return (
    <Popover position="bottom-end" width={280} trapFocus returnFocus opened={isOpen} onChange={setOpen}>
      <Popover.Target>
        <Button size="xs" variant="default" leftSection={<Bookmark size={14} />} onClick={() => setOpen(!isOpen)}>
          {t('list.views')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={6}>
        {views.map((view) => (
          <Group key={view.name} gap={4} wrap="nowrap">
            <Button
              size="xs"
              variant="subtle"
              color="gray"
              justify="start"
              flex={1}
              onClick={() => {
                setOpen(false);
                onOpen(view.search);
              }}
            >
              {view.name}
            </Button>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={t('list.forgetView', { name: view.name })}
              onClick={() => keep(views.filter((other) => other !== view))}
            >
              <Trash2 size={14} />
            </ActionIcon>
          </Group>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            save();
          }}
        >
          <Group gap={6} pt={6} wrap="nowrap">
            <TextInput
              size="xs"
              flex={1}
              aria-label={t('list.viewName')}
              placeholder={t('list.viewName')}
              value={name}
              onChange={({ currentTarget: { value } }) => setName(value)}
            />
            <Button size="xs" type="submit" disabled={!name.trim()}>
              {t('list.saveView')}
            </Button>
          </Group>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
