/** The left navigation. */
import { useTranslation } from 'react-i18next';

import { NavLink } from '../scope/Link.tsx';
import { Brand } from './Brand.tsx';
import { ROOMS } from './navigation.ts';
import classes from './Sidebar.module.css';

export function Sidebar() {
  const { t } = useTranslation();
  return (
    <nav className={classes['sidebar']} aria-label={t('frame.navigation')}>
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
    </nav>
  );
}
