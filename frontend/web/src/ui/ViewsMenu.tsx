/** Views of a list kept under a name in this browser: an address each. A view is shared by sharing its address. */
import { Button, Group, Menu, TextInput } from '@mantine/core';
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

export function ViewsMenu({ list, search, onOpen }: Props) {
  const { t } = useTranslation();
  const [views, setViews] = useState(() => readViews(list));
  const [name, setName] = useState('');
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
    <Menu position="bottom-end" width={280}>
      <Menu.Target>
        <Button size="xs" variant="default" leftSection={<Bookmark size={14} />}>
          {t('list.views')}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {views.map((view) => (
          <Group key={view.name} gap={4} wrap="nowrap">
            <Menu.Item onClick={() => onOpen(view.search)}>{view.name}</Menu.Item>
            <Menu.Item
              w={34}
              closeMenuOnClick={false}
              aria-label={t('list.forgetView', { name: view.name })}
              onClick={() => keep(views.filter((other) => other !== view))}
            >
              <Trash2 size={14} />
            </Menu.Item>
          </Group>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            save();
          }}
        >
          <Group gap={6} p={6} wrap="nowrap">
            <TextInput
              size="xs"
              flex={1}
              aria-label={t('list.viewName')}
              placeholder={t('list.viewName')}
              value={name}
              onKeyDown={(event) => event.stopPropagation()}
              onChange={({ currentTarget: { value } }) => setName(value)}
            />
            <Button size="xs" type="submit" disabled={!name.trim()}>
              {t('list.saveView')}
            </Button>
          </Group>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}
