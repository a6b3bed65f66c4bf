/** What is on the page, or what a button does, as a command to take along: for kubectl, the command line, or curl. */
import { ActionIcon, Code, Menu } from '@mantine/core';
import { Check, Copy, Terminal } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { intoClipboard } from './clipboard.ts';
import type { Commands } from './commands.ts';
import classes from './CopyAs.module.css';

const ORDER = ['kubectl', 'cli', 'curl'] as const;
const SHOWN_MS = 1_500;

export function CopyAs({ commands }: { commands: Commands }) {
  const { t } = useTranslation();
  const { copied, copy } = useCopy();
  return (
    <Menu position="bottom-end" width={460} closeOnItemClick={false}>
      <Menu.Target>
        <ActionIcon variant="default" aria-label={t('copyAs.label')} title={t('copyAs.label')}>
          <Terminal size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {ORDER.map((name) => {
          const command = commands[name];
          if (!command) return null;
          return (
            <Menu.Item
              key={name}
              leftSection={copied === command ? <Check size={14} /> : <Copy size={14} />}
              onClick={() => copy(command)}
            >
              <span className={classes['name']}>
                {t(`copyAs.${name}`)}
                {copied === command && ` · ${t('copyAs.copied')}`}
              </span>
              <Code className={classes['command']}>{command}</Code>
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}

export function CopyText({ text }: { text: string }) {
  const { t } = useTranslation();
  const { copied, copy } = useCopy();
  const label = copied ? t('copyAs.copied') : t('common.copy');
  return (
    <ActionIcon variant="default" aria-label={label} title={label} onClick={() => copy(text)}>
      {copied ? <Check size={14} /> : <Copy size={14} />}
    </ActionIcon>
  );
}

/** By the clipboard; by a selection where the browser gives none (plain HTTP on another machine). */
function useCopy() {
  const [copied, setCopied] = useState('');
  const copy = (text: string) => {
    void intoClipboard(text).then((done) => {
      if (!done) return;
      setCopied(text);
      setTimeout(() => setCopied((now) => (now === text ? '' : now)), SHOWN_MS);
    });
  };
  return { copied, copy };
}
