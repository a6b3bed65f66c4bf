/** Whether what is shown follows the fleet as it changes, how long ago it last changed, and the switch to hold it still. */
import { UnstyledButton } from '@mantine/core';
import { Pause, Play } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { Age } from '../ui/Age.tsx';
import { live } from './client.ts';
import { useLiveState } from './useLive.ts';
import classes from './LiveDot.module.css';

export function LiveDot() {
  const { t } = useTranslation();
  const { status, lastEventAt } = useLiveState();
  const paused = status === 'paused';
  const Icon = paused ? Play : Pause;
  return (
    <UnstyledButton
      className={classes['live']}
      data-status={status}
      title={t(paused ? 'live.resume' : 'live.pause')}
      onClick={() => live.setPaused(!paused)}
    >
      <span className={classes['dot']} aria-hidden />
      <span>{t(`live.${status}`)}</span>
      {lastEventAt !== null && (
        <span className={classes['age']}>
          {t('live.lastEvent')} <Age since={new Date(lastEventAt).toISOString()} ago />
        </span>
      )}
      <Icon size={13} className={classes['switch']} aria-hidden />
    </UnstyledButton>
  );
}
