/** A surface with an optional heading. */
import type { ReactNode } from 'react';

import classes from './Panel.module.css';

interface Props {
  title?: string;
  /** Beside the title, small. */
  note?: ReactNode;
  flush?: boolean;
  children: ReactNode;
}

export function Panel({ title, note, flush = false, children }: Props) {
  return (
    <section className={classes['panel']} aria-label={title}>
      {title !== undefined && (
        <h2 className={classes['title']}>
          {title} {note && <small className="cv-soft">{note}</small>}
        </h2>
      )}
      <div className={flush ? undefined : classes['body']}>{children}</div>
    </section>
  );
}
