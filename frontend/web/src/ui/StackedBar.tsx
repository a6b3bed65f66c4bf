/** Parts of a whole on one line. Screen readers get the sentence in `label`; the numbers stand beside it as text. */
import classes from './StackedBar.module.css';

export interface Segment {
  look: 'used' | 'held';
  value: number;
}

interface Props {
  label: string;
  segments: Segment[];
  total: number;
  size?: 'thin' | 'normal' | 'tall';
}

export function StackedBar({ label, segments, total, size = 'normal' }: Props) {
  return (
    <div className={classes['bar']} data-size={size} role="img" aria-label={label}>
      {segments
        .filter(({ value }) => value > 0)
        .map(({ look, value }) => (
          <span key={look} className={classes['segment']} data-look={look} style={{ width: `${share(value, total)}%` }} />
        ))}
    </div>
  );
}

function share(value: number, total: number): number {
  return total > 0 ? Math.min(100, (value / total) * 100) : 0;
}
