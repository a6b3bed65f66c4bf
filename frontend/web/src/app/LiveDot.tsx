/** Whether what is shown follows the fleet as it changes, how long ago it last changed, and the switch to hold it still. */
import { UnstyledButton } from '@mantine/core';
import { Pause, Play } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { Age } from '../ui/Age.tsx';
import { formatDuration } from '../ui/duration.ts';
import { live } from './client.ts';
import { useLiveState } from './useLive.ts';
import classes from './LiveDot.module.css';

/** The ages that take most room, in one language or another: it is kept from the start, so that the first change moves nothing. */
const LONGEST_S = [3_599, 86_399];

export function LiveDot() {
  const { t, i18n } = useTranslation();
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
      <span className={classes['age']}>
        {LONGEST_S.map((age) => (
          <span key={age} className={classes['room']} aria-hidden>
            {t('live.lastEvent')} <span className="cv-age">{t('common.ago', { age: formatDuration(age, i18n.language) })}</span>
          </span>
        ))}
        {lastEventAt !== null && (
          <span>
            {t('live.lastEvent')} <Age since={new Date(lastEventAt).toISOString()} ago />
          </span>
        )}
      </span>
      <Icon size={13} className={classes['switch']} aria-hidden />
    </UnstyledButton>
  );
}
