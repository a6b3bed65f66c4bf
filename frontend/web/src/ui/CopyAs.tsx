/** What is on the page, or what a button does, as a command to take along: for kubectl, the command line, or curl. */
import { ActionIcon, Code, Menu } from '@mantine/core';
import { Check, Copy, Terminal } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import classes from './CopyAs.module.css';

export interface Commands {
  kubectl?: string;
  cli?: string;
  curl?: string;
}

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

/** Without a clipboard (plain HTTP on another machine) the text is still there to be selected. */
function useCopy() {
  const [copied, setCopied] = useState('');
  const copy = (text: string) => {
    if (!window.isSecureContext) return;
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(text);
      setTimeout(() => setCopied((now) => (now === text ? '' : now)), SHOWN_MS);
    });
  };
  return { copied, copy };
}

/** As one word of a shell, whatever is in it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A call of the REST API by curl, with the token from the environment. */
export function curl(path: string, method = 'GET', body?: unknown): string {
  const parts = ['curl', '-sS', '-H', '"Authorization: Bearer $CONVOY_TOKEN"'];
  if (method !== 'GET') parts.push('-X', method);
  if (body !== undefined) parts.push('-H', "'Content-Type: application/json'", '-d', quoted(JSON.stringify(body)));
  return [...parts, quoted(`${window.location.origin}/api/v1/${path}`)].join(' ');
}
