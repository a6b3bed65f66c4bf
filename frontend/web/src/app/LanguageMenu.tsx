/** The language of the console. */
import { ActionIcon, Menu } from '@mantine/core';
import { Check, Languages } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { chooseLanguage, type Language, LANGUAGES } from './i18n.ts';

export function LanguageMenu() {
  const { t, i18n } = useTranslation();
  return (
    <Menu position="bottom-end" width={190}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={30} aria-label={t('frame.language')}>
          <Languages size={17} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.entries(LANGUAGES) as [Language, string][]).map(([language, name]) => (
          <Menu.Item
            key={language}
            lang={language}
            role="menuitemradio"
            aria-checked={i18n.language === language}
            rightSection={i18n.language === language ? <Check size={14} aria-hidden /> : undefined}
            onClick={() => void chooseLanguage(language)}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
