/** The picture of a chart on a canvas, drawn by uPlot. What it shows is said in words around it. */
import 'uplot/dist/uPlot.min.css';

import { useEffect, useRef } from 'react';
import uPlot from 'uplot';

import { layersOf, type Line, type Mark } from './data.ts';
import { axesOf, drawMarks, heightOf, seriesOf } from './paint.ts';
import classes from './Chart.module.css';

const HEIGHT = 220;
const SCHEME = 'data-mantine-color-scheme';

interface Props {
  times: number[];
  step: number;
  lines: Line[];
  marks: Mark[];
  language: string;
  /** A value beside the axis, where it is no plain number. */
  axis?: ((value: number) => string) | undefined;
  /** The place that is pointed at, if any is. */
  at: number | null;
  onAt: (at: number | null) => void;
}

export function Plot({ times, step, lines, marks, language, axis, at, onAt }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const shown = useRef({ times, step, lines, marks, axis, at, onAt });
  useEffect(() => {
    shown.current = { times, step, lines, marks, axis, at, onAt };
  });
  const looks = lines.map(({ id, look, stacked }) => `${id} ${look} ${stacked}`).join();

  useEffect(() => {
    if (!place.current) return undefined;
    const made = new uPlot(optionsOf(place.current.clientWidth, language, shown), dataOf(shown.current), place.current);
    chart.current = made;
    const size = new ResizeObserver(([entry]) => entry && made.setSize({ width: entry.contentRect.width, height: HEIGHT }));
    size.observe(place.current);
    const scheme = new MutationObserver(() => made.redraw(false, true));
    scheme.observe(document.documentElement, { attributes: true, attributeFilter: [SCHEME] });
    return () => {
      size.disconnect();
      scheme.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [looks, language]);

  useEffect(() => {
    chart.current?.setData(dataOf({ times, lines }));
  }, [times, lines, marks]);

  useEffect(() => {
    const left = at === null ? -10 : (chart.current?.valToPos((times[at] ?? 0) + step / 2, 'x') ?? -10);
    chart.current?.setCursor({ left, top: 0 }, false);
  }, [at, times, step]);

  return <div ref={place} className={classes['plot']} />;
}

type Shown = Pick<Props, 'times' | 'step' | 'lines' | 'marks' | 'axis' | 'at' | 'onAt'>;

function dataOf({ times, lines }: Pick<Shown, 'times' | 'lines'>): uPlot.AlignedData {
  return [times, ...layersOf(lines).map(({ values }) => values)];
}

function optionsOf(width: number, language: string, shown: { readonly current: Shown }): uPlot.Options {
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, bind: { dblclick: () => null } },
    padding: [8, 18, 0, 0],
    scales: {
      x: { range: () => spanOf(shown.current) },
      y: { range: (_, __, highest) => heightOf(highest) },
    },
    axes: axesOf(language, shown.current.axis),
    series: [{}, ...seriesOf(layersOf(shown.current.lines))],
    hooks: {
      draw: [(chart) => drawMarks(chart, shown.current.marks)],
      setCursor: [(chart) => shown.current.onAt(placeOf(chart, shown.current))],
    },
  };
}

function spanOf({ times, step }: Shown): uPlot.Range.MinMax {
  return [times[0] ?? 0, (times.at(-1) ?? 0) + step];
}

function placeOf(chart: uPlot, { times, step }: Shown): number | null {
  const { left = -1 } = chart.cursor;
  if (left < 0) return null;
  const place = Math.floor((chart.posToVal(left, 'x') - (times[0] ?? 0)) / step);
  return Math.min(times.length - 1, Math.max(0, place));
}
