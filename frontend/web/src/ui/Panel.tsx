/** A surface with an optional heading. */
import type { ReactNode } from 'react';

import classes from './Panel.module.css';

export function Panel({ title, flush = false, children }: { title?: string; flush?: boolean; children: ReactNode }) {
  return (
    <section className={classes['panel']} aria-label={title}>
      {title !== undefined && <h2 className={classes['title']}>{title}</h2>}
      <div className={flush ? undefined : classes['body']}>{children}</div>
    </section>
  );
}
