/** The legend of a chart, with the values at the moment that is pointed at, or else the latest. */
import type { Line } from './data.ts';
import classes from './Chart.module.css';

interface Props {
  moment: string;
  values: (Line & { value: string })[];
}

export function Readout({ moment, values }: Props) {
  return (
    <figcaption className={classes['readout']}>
      <span className={classes['moment']}>{moment}</span>
      {values.map(({ id, label, look, value }) => (
        <span key={id}>
          <i className={classes['key']} data-look={look} aria-hidden /> {label} <b>{value}</b>
        </span>
      ))}
    </figcaption>
  );
}
