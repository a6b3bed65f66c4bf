/**
 * Values over time: a picture, the values at one moment as text, what happened, and a table of all of it. With the keyboard one
 * moves along the moments as along a slider, whose value is announced.
 */
import { Button } from '@mantine/core';
import { Table2 } from 'lucide-react';
import { type KeyboardEvent, useId, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { ChartTable } from './ChartTable.tsx';
import { known, latest, type Line, type Mark, marksIn, target, type Value } from './data.ts';
import { MarkList } from './MarkList.tsx';
import { momentOf } from './moments.ts';
import { Plot } from './Plot.tsx';
import { Readout } from './Readout.tsx';
import classes from './Chart.module.css';

export interface ChartProps {
  label: string;
  /** The beginnings of the steps, in seconds since 1970, and the length of each. */
  times: number[];
  step: number;
  lines: Line[];
  marks?: Mark[];
  format: (value: Value) => string;
  axis?: ((value: number) => string) | undefined;
}

export function TimeChart({ label, times, step, lines, marks = [], format, axis }: ChartProps) {
  const { t, i18n } = useTranslation('deferred');
  const [at, setAt] = useState<number | null>(null);
  const [tabled, setTabled] = useState(false);
  const table = useId();
  const place = Math.min(at ?? latest(lines, times.length), Math.max(0, times.length - 1));
  const moment = momentOf(times[place] ?? 0, step, i18n.language);
  const happened = marksIn(marks, times[place] ?? 0, step).map(({ text }) => text);
  const values = lines.map((line) => ({ ...line, value: format(known(line, place)) }));
  const said = [...happened, ...values.map(({ label: name, value }) => `${name} ${value}`)].join(', ');

  const onKeyDown = (event: KeyboardEvent) => {
    const goal = target(event.key, place, times.length);
    if (goal === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setAt(goal);
  };

  return (
    <figure className={classes['chart']} aria-label={label}>
      <div
        role="slider"
        tabIndex={0}
        aria-label={t('along', { label })}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, times.length - 1)}
        aria-valuenow={place}
        aria-valuetext={`${moment}: ${said}`}
        className={classes['slider']}
        onKeyDown={onKeyDown}
        onBlur={() => setAt(null)}
      >
        <Plot times={times} step={step} lines={lines} marks={marks} language={i18n.language} axis={axis} at={at} onAt={setAt} />
      </div>
      <Readout moment={moment} values={values} />
      <MarkList marks={marks} step={step} />
      <Button
        size="compact-xs"
        variant="subtle"
        leftSection={<Table2 size={13} aria-hidden />}
        aria-expanded={tabled}
        aria-controls={table}
        onClick={() => setTabled(!tabled)}
      >
        {t(tabled ? 'hideTable' : 'asTable')}
      </Button>
      <div id={table}>
        {tabled && <ChartTable label={label} times={times} step={step} lines={lines} marks={marks} format={format} />}
      </div>
    </figure>
  );
}
