/** Help: the tour, the keys, the REST API's own pages. */
import { ActionIcon, Menu } from '@mantine/core';
import { BookOpen, CircleHelp, Footprints, Keyboard } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { tour, useTour } from './tour.ts';

export function HelpMenu({ onKeys }: { onKeys: () => void }) {
  const { t } = useTranslation();
  const { status } = useTour();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={30} aria-label={t('help.title')}>
          <CircleHelp size={17} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Footprints size={15} aria-hidden />} onClick={tour.open}>
          {t(status === 'away' ? 'tour.resume' : 'tour.start')}
        </Menu.Item>
        <Menu.Item leftSection={<Keyboard size={15} aria-hidden />} onClick={onKeys}>
          {t('shortcuts.title')}
        </Menu.Item>
        <Menu.Item component="a" href="/api/v1/docs/" leftSection={<BookOpen size={15} aria-hidden />}>
          {t('help.api')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
