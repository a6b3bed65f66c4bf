/** How a chart looks: its colours, read from the page's tokens whenever it is drawn, and its axes in the reader's language. */
import uPlot from 'uplot';

import { alone, type Layers, type Look, type Mark } from './data.ts';

const AXIS_FONT = "12px 'Inter Variable', system-ui, sans-serif";
const HATCHED = new Set<Look>(['held', 'away', 'lent', 'c1', 'c3', 'c5', 'c7']);
const DASHES: Partial<Record<Look, number[]>> = { min: [6, 4], lent: [2, 3] };
const DAY_S = 86_400;
/** Seconds between two times on the axis. They are written to the minute, so that less would write one twice. */
const TIME_STEPS = [60, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, ...[1, 2, 3, 5, 7, 14, 30].map((days) => days * DAY_S)];
const HATCH = 6;

function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--cv-${name}`).trim();
}

/** Colour alone tells no two areas apart: some are hatched. */
function fillOf(look: Look): string | CanvasPattern {
  const color = token(`chart-${look}`);
  if (!HATCHED.has(look)) return color;
  const tile = document.createElement('canvas');
  tile.width = tile.height = HATCH;
  const context = tile.getContext('2d');
  if (!context) return color;
  context.fillStyle = token(`chart-${look}-stripe`);
  context.fillRect(0, 0, HATCH, HATCH);
  context.strokeStyle = color;
  context.lineWidth = HATCH / 2;
  for (const shift of [-HATCH, 0, HATCH]) {
    context.moveTo(shift - 1, HATCH + 1);
    context.lineTo(shift + HATCH + 1, -1);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat') ?? color;
}

export function seriesOf(layers: Layers): uPlot.Series[] {
  const paths = uPlot.paths.stepped?.({ align: 1 });
  return layers.map(({ line: { label, look, stacked } }) => ({
    label,
    ...(paths ? { paths } : {}),
    stroke: () => token(`chart-${look}`),
    width: stacked ? 1 : 2,
    ...(stacked ? { fill: () => fillOf(look) } : { dash: DASHES[look] ?? [] }),
    points: { show: false, size: 6, fill: () => token(`chart-${look}`), filter: (plot, series) => alone(plot.data[series] ?? []) },
    spanGaps: false,
  }));
}

export function axesOf(language: string, words?: (value: number) => string): uPlot.Axis[] {
  const hour = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hour12: false });
  const day = new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric' });
  const number = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 });
  const common = {
    font: AXIS_FONT,
    stroke: () => token('text-soft'),
    grid: { stroke: () => token('line'), width: 1 },
    ticks: { show: false },
  };
  const moment = (at: number, step: number) => {
    const date = new Date(at * 1000);
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    return (step >= DAY_S || isMidnight ? day : hour).format(date);
  };
  return [
    { ...common, incrs: TIME_STEPS, size: 26, gap: 6, values: (_, splits, __, ___, step) => splits.map((at) => moment(at, step)) },
    { ...common, size: words ? 72 : 46, gap: 6, values: (_, splits) => splits.map((value) => (words ? words(value) : number.format(value))) },
  ];
}

/** From zero to a little more than the highest value. */
export function heightOf(highest: number): uPlot.Range.MinMax {
  return [0, highest > 0 ? highest * 1.06 : 1];
}

/** A line from top to bottom at each moment, with a triangle that points down for what is bad and up for what is good. */
export function drawMarks(chart: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = chart;
  const size = 5 * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { at, tone } of marks) {
    const left = chart.valToPos(at, 'x', true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = token(tone);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    const [base, tip] = tone === 'bad' ? [0, 2 * size] : [2 * size, 0];
    ctx.beginPath();
    ctx.moveTo(left - size, bbox.top + base);
    ctx.lineTo(left + size, bbox.top + base);
    ctx.lineTo(left, bbox.top + tip);
    ctx.fill();
  }
  ctx.restore();
}
