/** Says that the server does not answer, asks for it again and again, and goes away by itself when it does. */
import { CloudOff } from 'lucide-react';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';

import { connection, useConnection } from '../api/connection.ts';
import { fetchAllAgain, live } from './client.ts';
import classes from './ServerBanner.module.css';

const ASK_EVERY_MS = 2_000;

export function ServerBanner() {
  const { t } = useTranslation();
  const down = useConnection().server === 'down';
  useEffect(() => (down ? askUntilAnswered() : undefined), [down]);
  if (!down) return null;
  return (
    <div role="status" className={classes['banner']}>
      <CloudOff size={16} aria-hidden />
      {t('server.down')}
    </div>
  );
}

function askUntilAnswered(): () => void {
  const ask = async () => {
    const answer = await fetch('/livez', { cache: 'no-store' }).catch(() => null);
    if (!answer?.ok) return;
    connection.serverAnswered();
    live.reconnect();
    fetchAllAgain();
  };
  const timer = setInterval(() => void ask(), ASK_EVERY_MS);
  return () => clearInterval(timer);
}
