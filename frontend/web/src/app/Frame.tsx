/** What stands around every page: skip link, navigation, top bar, banners, shortcuts. */
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { lazy, Suspense, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { Outlet } from 'react-router';

import type { Me } from '../api/types.ts';
import { IncidentBanner } from '../fleet/IncidentBanner.tsx';
import { useGo } from '../scope/useScope.ts';
import { useShortcuts } from '../ui/shortcuts.ts';
import { live } from './client.ts';
import { ROOMS } from './navigation.ts';
import { ServerBanner } from './ServerBanner.tsx';
import { Sidebar } from './Sidebar.tsx';
import { TopBar } from './TopBar.tsx';
import { useTour } from './tour.ts';
import { useFirstRun } from './useFirstRun.ts';
import { useLiveLine } from './useLive.ts';
import classes from './Frame.module.css';

const Palette = lazy(async () => ({ default: (await import('./Palette.tsx')).Palette }));
const Tour = lazy(async () => ({ default: (await import('./Tour.tsx')).Tour }));
const ShortcutHelp = lazy(async () => ({ default: (await import('./ShortcutHelp.tsx')).ShortcutHelp }));

export function Frame({ me }: { me: Me }) {
  const { t } = useTranslation();
  const go = useGo();
  const [helpShown, help] = useDisclosure(false);
  const [paletteShown, palette] = useDisclosure(false);
  const main = useRef<HTMLElement>(null);
  const { status, step } = useTour();
  useFirstRun();
  useLiveLine();
  useHotkeys([['mod+K', palette.toggle]], []);
  useShortcuts({
    '?': help.open,
    p: () => live.setPaused(live.read().status !== 'paused'),
    ...Object.fromEntries(ROOMS.map(({ keys, to }) => [keys, () => go(to)])),
  });
  return (
    <div className={classes['frame']}>
      <button type="button" className={classes['skip']} onClick={() => main.current?.focus()}>
        {t('frame.skip')}
      </button>
      <Sidebar />
      <div className={classes['column']}>
        <TopBar me={me} onHelp={help.open} onSearch={palette.open} />
        <ServerBanner />
        <main ref={main} tabIndex={-1} className={classes['main']}>
          <Suspense>
            <Outlet />
          </Suspense>
        </main>
        <IncidentBanner />
      </div>
      <Suspense>
        {helpShown && <ShortcutHelp onClose={help.close} />}
        {status === 'open' && <Tour step={step} />}
        {paletteShown && <Palette onClose={palette.close} />}
      </Suspense>
    </div>
  );
}
