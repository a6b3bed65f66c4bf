/** The language of the console. */
import { ActionIcon, Menu } from '@mantine/core';
import { Languages } from 'lucide-react';
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
        <Menu.RadioGroup value={i18n.language} onChange={(language) => void chooseLanguage(language as Language)}>
          {Object.entries(LANGUAGES).map(([language, name]) => (
            <Menu.RadioItem key={language} value={language} lang={language} closeMenuOnClick>
              {name}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  );
}
