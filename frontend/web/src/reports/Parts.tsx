/** What became of hours, as parts of a whole on one line, and the key to their looks. */
import type { ReactNode } from 'react';

import classes from './Report.module.css';

export interface Part {
  look: 'good' | 'start' | 'lost' | 'preempted' | 'stopped' | 'hung' | 'waiting' | 'saving';
  label: string;
  value: number;
}

export function Parts({ parts, total, label }: { parts: Part[]; total: number; label: string }) {
  return (
    <div className={classes['parts']} role="img" aria-label={label}>
      {parts
        .filter(({ value }) => value > 0)
        .map(({ look, value }, i) => (
          <span key={`${look} ${i}`} data-part={look} style={{ width: `${total > 0 ? (value / total) * 100 : 0}%` }} />
        ))}
    </div>
  );
}

export function PartsKey({ parts }: { parts: Omit<Part, 'value'>[] }) {
  return (
    <ul className={classes['key']}>
      {parts.map(({ look, label }) => (
        <li key={label}>
          <i data-part={look} aria-hidden />
          {label}
        </li>
      ))}
    </ul>
  );
}

interface Tile {
  name: string;
  value: ReactNode;
  note?: ReactNode;
}

export function Tiles({ label, tiles }: { label: string; tiles: Tile[] }) {
  return (
    <section aria-label={label}>
      <dl className={classes['tiles']}>
        {tiles.map(({ name, value, note }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {value}
              {note !== undefined && <small>{note}</small>}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
