/** A surface with an optional heading. */
import type { ReactNode } from 'react';

import classes from './Panel.module.css';

interface Props {
  title?: string;
  /** Beside the title, small. */
  note?: ReactNode;
  flush?: boolean;
  /** Controls at the end of the title's line. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Panel({ title, note, flush = false, actions, children }: Props) {
  return (
    <section className={classes['panel']} aria-label={title}>
      {title !== undefined && (
        <div className={classes['title']}>
          <h2>
            {title} {note && <small className="cv-soft">{note}</small>}
          </h2>
          {actions}
        </div>
      )}
      <div className={flush ? undefined : classes['body']}>{children}</div>
    </section>
  );
}
