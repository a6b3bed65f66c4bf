/** A panel with a chart in it. What draws charts and their texts are fetched with the first one. */
import { Skeleton } from '@mantine/core';
import { type ReactNode, Suspense } from 'react';

import { Panel } from '../ui/Panel.tsx';
import { RangeSwitch } from './RangeSwitch.tsx';
import classes from './ChartPanel.module.css';

/** So that nothing moves when the chart is there. */
export const CHART_HEIGHT = 278;

interface Props {
  title: string;
  /** Controls beside the range. */
  actions?: ReactNode;
  children: ReactNode;
}

export function ChartPanel({ title, actions, children }: Props) {
  const controls = (
    <div className={classes['controls']}>
      {actions}
      <RangeSwitch />
    </div>
  );
  return (
    <Panel title={title} actions={controls}>
      <Suspense fallback={<Skeleton height={CHART_HEIGHT} aria-busy />}>{children}</Suspense>
    </Panel>
  );
}
