/** The left navigation; on a narrow screen a menu that a button in the corner of the top bar opens. */
import { Menu } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useLocation } from 'react-router';

import { NavLink } from '../scope/Link.tsx';
import { Brand } from './Brand.tsx';
import { ROOMS } from './navigation.ts';
import classes from './Sidebar.module.css';

export function Sidebar() {
  const { t } = useTranslation();
  const rooms = useRef<HTMLDivElement>(null);
  const { key: visit } = useLocation();
  // A browser without popovers shows the rooms beside the page at every width.
  useEffect(() => (rooms.current as Partial<HTMLDivElement> | null)?.hidePopover?.(), [visit]);
  return (
    <nav className={classes['sidebar']} aria-label={t('frame.navigation')}>
      <button type="button" className={classes['open']} popoverTarget="rooms" aria-label={t('frame.menu')}>
        <Menu size={18} aria-hidden />
      </button>
      <div ref={rooms} id="rooms" popover="auto" className={classes['rooms']}>
        <div className={classes['brand']}>
          <Brand />
        </div>
        <ul>
          {ROOMS.map(({ to, name, keys, icon: Icon }) => (
            <li key={to}>
              <NavLink to={to} className={classes['link'] ?? ''}>
                <Icon size={16} strokeWidth={1.9} aria-hidden />
                {t(`rooms.${name}`)}
                <kbd aria-hidden>{keys}</kbd>
              </NavLink>
            </li>
          ))}
        </ul>
      </div>
    </nav>
  );
}
