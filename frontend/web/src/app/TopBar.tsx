/** The strip over every page: how live it is, which part of the fleet is looked at, and what is the reader's own (help, colours, language, account). */
import { Search } from 'lucide-react';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';

import type { Me } from '../api/types.ts';
import { LiveDot } from './LiveDot.tsx';
import classes from './TopBar.module.css';

const ScopeBar = lazy(async () => ({ default: (await import('./ScopeBar.tsx')).ScopeBar }));
const ReaderMenus = lazy(async () => ({ default: (await import('./ReaderMenus.tsx')).ReaderMenus }));

export function TopBar({ me, onHelp, onSearch }: { me: Me; onHelp: () => void; onSearch: () => void }) {
  const { t } = useTranslation();
  return (
    <div className={classes['bar']}>
      <LiveDot />
      <button type="button" className={classes['search']} onClick={onSearch}>
        <Search size={14} aria-hidden />
        {t('palette.open')}
        <kbd aria-hidden>Ctrl K</kbd>
      </button>
      <span className={classes['scope']}>
        <Suspense>
          <ScopeBar />
        </Suspense>
      </span>
      <div className={classes['reader']}>
        <Suspense>
          <ReaderMenus me={me} onKeys={onHelp} />
        </Suspense>
      </div>
    </div>
  );
}
