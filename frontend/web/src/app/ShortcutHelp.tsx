/** The keys that work, by what they do. */
import { Kbd, Modal } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { ROOMS } from './navigation.ts';
import classes from './ShortcutHelp.module.css';

export function ShortcutHelp({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const lines = [
    ...ROOMS.map(({ keys, name }) => ({ keys, does: t('shortcuts.goTo', { room: t(`rooms.${name}`) }) })),
    { keys: 'Ctrl K', does: t('palette.title') },
    { keys: '/', does: t('shortcuts.search') },
    { keys: 'p', does: t('shortcuts.pause') },
    { keys: '?', does: t('shortcuts.help') },
  ];
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('shortcuts.title')}
      size={420}
      closeButtonProps={{ 'aria-label': t('common.close') }}
    >
      <dl className={classes['keys']}>
        {lines.map(({ keys, does }) => (
          <div key={keys}>
            <dt>{does}</dt>
            <dd>
              {keys.split(' ').map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
