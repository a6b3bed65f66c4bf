/** What a page says when it has nothing to show: empty (and what to do next) or failed (and a way to try again). */
import { Button } from '@mantine/core';
import { Inbox, TriangleAlert, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';

import { ErrorText } from './ServerText.tsx';
import classes from './Message.module.css';

export function Empty({ title, icon = Inbox, children }: { title: string; icon?: LucideIcon; children?: ReactNode }) {
  return <Message tone="neutral" icon={icon} title={title} body={children} />;
}

export function Failed({ error, onRetry }: { error: Error; onRetry: () => void }) {
  const { t } = useTranslation();
  return (
    <div role="alert">
      <Message tone="bad" icon={TriangleAlert} title={t('common.failed')} body={<ErrorText error={error} />}>
        <Button variant="default" size="xs" onClick={onRetry}>
          {t('common.retry')}
        </Button>
      </Message>
    </div>
  );
}

interface MessageProps {
  tone: 'neutral' | 'bad';
  icon: LucideIcon;
  title: string;
  body: ReactNode;
  children?: ReactNode;
}

function Message({ tone, icon: Icon, title, body, children }: MessageProps) {
  return (
    <div className={classes['message']}>
      <span className={classes['icon']} data-tone={tone}>
        <Icon size={22} strokeWidth={1.75} aria-hidden />
      </span>
      <h2>{title}</h2>
      <div className={classes['body']}>{body}</div>
      {children}
    </div>
  );
}
