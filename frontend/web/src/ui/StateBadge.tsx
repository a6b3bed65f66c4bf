/** A state in one word: a shape and a colour beside it, never colour alone. */
import type { LucideIcon } from 'lucide-react';

import type { Tone } from './tones.ts';
import classes from './StateBadge.module.css';

interface Props {
  tone: Tone;
  icon: LucideIcon;
  label: string;
  /** What the word means, on hover. */
  meaning?: string;
}

export function StateBadge({ tone, icon: Icon, label, meaning }: Props) {
  return (
    <span className={classes['badge']} data-tone={tone} title={meaning}>
      <Icon size={13} strokeWidth={2.25} aria-hidden />
      {label}
    </span>
  );
}
