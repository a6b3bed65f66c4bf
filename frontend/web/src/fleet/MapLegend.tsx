/** What a GPU map is coloured by, and what its colours mean: of what is on screen, the largest owner first. */
import { SegmentedControl } from '@mantine/core';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { type Cell, type ColourBy, type LegendEntry, LEVELS } from './cells.ts';
import classes from './GpuMap.module.css';

const BY: ColourBy[] = ['job', 'queue', 'namespace', 'fragments', 'use'];
const LOOKS: Cell['look'][] = ['held', 'stranger', 'free', 'unknown', 'off'];
/** More would be a list of jobs, which another page is. */
const NAMED = 24;

export function ColourSwitch({ by, onChange }: { by: ColourBy; onChange: (by: ColourBy) => void }) {
  const { t } = useTranslation('deferred');
  return (
    <SegmentedControl
      size="xs"
      aria-label={t('map.colour')}
      value={by}
      onChange={(next) => onChange(BY.find((each) => each === next) ?? 'job')}
      data={BY.map((value) => ({ value, label: t(`map.by.${value}`) }))}
    />
  );
}

export function MapLegend({ cells, legend, by }: { cells: Cell[]; legend: LegendEntry[]; by: ColourBy }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const counts = new Map<Cell['look'], number>();
  for (const { look } of cells) counts.set(look, (counts.get(look) ?? 0) + 1);
  return (
    <ul className={classes['legend']} aria-label={t('deferred:map.legend')}>
      {legend.slice(0, NAMED).map(({ key, label, gpus, hue }) => (
        <li key={key}>
          <span className={classes['cell']} data-hue={hue} aria-hidden />
          {by === 'job' ? <Link to={`/jobs/${key}`}>{label}</Link> : label} <b>{gpus}</b>
        </li>
      ))}
      {legend.length > NAMED && <li className="cv-soft">{t('deferred:moreMarks', { count: legend.length - NAMED })}</li>}
      {by === 'use' &&
        LEVELS.map((level) => (
          <li key={level}>
            <span className={classes['cell']} data-use={level} aria-hidden /> {t(`deferred:map.use.${level}`)}{' '}
            <b>{cells.filter(({ key }) => key === level).length}</b>
          </li>
        ))}
      {LOOKS.filter((look) => counts.has(look)).map((look) => (
        <li key={look} className="cv-soft">
          <span className={classes['cell']} data-look={look} aria-hidden /> {t(`deferred:map.look.${look}`)} <b>{counts.get(look)}</b>
        </li>
      ))}
    </ul>
  );
}
