/** A page's title, what it counts, and its controls on the right. */
import type { ReactNode } from 'react';

import classes from './PageHeader.module.css';

export function PageHeader({ title, note, children }: { title: ReactNode; note?: ReactNode; children?: ReactNode }) {
  return (
    <header className={classes['header']}>
      <div className={classes['title']}>
        <h1>{title}</h1>
        {note !== undefined && <span className="cv-soft cv-numbers">{note}</span>}
      </div>
      {children !== undefined && <div className={classes['controls']}>{children}</div>}
    </header>
  );
}
