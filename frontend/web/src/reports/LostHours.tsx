/** What cost GPU-hours, the most first: by class of failure, node, job or others; and as files. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import type { GoodputRow } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { costOf, lossesOf, pageOf } from './goodput.ts';
import { Parts, PartsKey } from './Parts.tsx';
import type { Chosen } from './period.ts';
import { filePath, goodputQuery, type Loser } from './queries.ts';
import { Choice, Files, Report, States } from './Report.tsx';
import { useWords } from './useWords.ts';

const MOST = 20;
const CLASSES = ['code', 'data', 'infrastructure', 'preemption', 'unknown'] as const;

interface Props {
  chosen: Chosen;
  /** What it may be grouped by; the first at first. */
  choices: readonly [Loser, ...Loser[]];
  title: 'byClass' | 'byNode' | 'byJob';
}

export function LostHours({ chosen, choices, title }: Props) {
  const { t } = useWords();
  const [by, setBy] = useState<Loser>(choices[0]);
  const query = useQuery(goodputQuery(chosen, by));
  const forms = ['csv', 'json'] as const;
  const controls = (
    <>
      {choices.length > 1 && (
        <Choice label={t('hours.by')} value={by} values={choices.map((value) => ({ value, label: t(`reports.by.${value}`) }))} onChange={setBy} />
      )}
      <Files paths={forms.map((form) => ({ form: form.toUpperCase(), path: filePath('goodput', chosen, by, form) }))} />
    </>
  );
  return (
    <Report title={t(`reports.${title}`)} about={t(`reports.${title}About`)} controls={controls}>
      <States query={query} isEmpty={({ results }) => results.length === 0} empty={t('reports.lossesEmpty')}>
        {({ results }) => <Rows by={by} rows={results} caption={t(`reports.${title}`)} stale={query.isPlaceholderData} />}
      </States>
    </Report>
  );
}

function Rows({ by, rows, caption, stale }: { by: Loser; rows: GoodputRow[]; caption: string; stale: boolean }) {
  const { t, hours, percent, duration, count } = useWords();
  const most = Math.max(0, ...rows.map(costOf));
  const isOfClasses = by === 'class' || by === 'node';
  const nameOf = ({ name }: GoodputRow) => {
    const known = CLASSES.find((each) => by === 'class' && each === name);
    return known ? t(`reports.class.${known}`) : name || t('reports.without');
  };
  const partsOf = (row: GoodputRow) => lossesOf(row, (loss) => t(`reports.loss.${loss}`));
  const words = (row: GoodputRow) => `${nameOf(row)}: ${partsOf(row).map(({ label, value }) => `${label} ${hours(value)}`).join(', ')}`;
  const linked = (row: GoodputRow) => {
    const page = pageOf(by, row.name);
    return page ? <Link to={page}>{nameOf(row)}</Link> : nameOf(row);
  };
  const [first] = rows;
  return (
    <>
      <DataTable
        caption={caption}
        rows={rows.slice(0, MOST)}
        rowKey={({ name }) => name}
        stale={stale}
        columns={[
          { id: 'name', header: t(`reports.by.${by}`), cell: linked },
          { id: 'cost', header: t('reports.lostHours'), align: 'end', cell: (row) => hours(costOf(row)) },
          { id: 'parts', header: t('reports.lostTo'), width: '32%', cell: (row) => <Parts parts={partsOf(row)} total={most} label={words(row)} /> },
          { id: 'failures', header: t('reports.failures'), align: 'end', cell: (row) => count(row.failures) },
          { id: 'mtbf', header: 'MTBF', align: 'end', cell: (row) => duration(row.mtbf_hours === null ? null : row.mtbf_hours * 3600) },
          ...(isOfClasses ? [] : [{ id: 'ettr', header: 'ETTR', align: 'end' as const, cell: (row: GoodputRow) => percent(row.ettr) }]),
        ]}
      />
      {first && <PartsKey parts={partsOf(first)} />}
      {rows.length > MOST && <p className="cv-soft">{t('reports.more', { count: rows.length - MOST, shown: count(rows.length - MOST) })}</p>}
    </>
  );
}
