/** Light, dark, or as the machine says. */
import { ActionIcon, type MantineColorScheme, Menu, useMantineColorScheme } from '@mantine/core';
import { Check, Monitor, Moon, Sun } from 'lucide-react';
import { useTranslation } from 'react-i18next';

const ICONS = { light: Sun, dark: Moon, auto: Monitor };

export function ColorMenu() {
  const { t } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Current = ICONS[colorScheme];
  return (
    <Menu position="bottom-end" width={170}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={30} aria-label={t('colors.title')}>
          <Current size={17} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(ICONS) as MantineColorScheme[]).map((scheme) => (
          <ColorItem key={scheme} scheme={scheme} chosen={scheme === colorScheme} onChoose={setColorScheme} />
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

interface ItemProps {
  scheme: MantineColorScheme;
  chosen: boolean;
  onChoose: (scheme: MantineColorScheme) => void;
}

function ColorItem({ scheme, chosen, onChoose }: ItemProps) {
  const { t } = useTranslation();
  const Icon = ICONS[scheme];
  return (
    <Menu.Item
      role="menuitemradio"
      aria-checked={chosen}
      leftSection={<Icon size={15} aria-hidden />}
      rightSection={chosen ? <Check size={14} aria-hidden /> : undefined}
      onClick={() => onChoose(scheme)}
    >
      {t(`colors.${scheme}`)}
    </Menu.Item>
  );
}
