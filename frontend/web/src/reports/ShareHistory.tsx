/** What the children of a node had used of late, beside what their weights entitle them to. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import type { Shares } from '../api/types.ts';
import { SeriesChart } from '../series/SeriesChart.tsx';
import { CATEGORIES } from '../ui/chart/data.ts';
import { DataTable } from '../ui/DataTable.tsx';
import type { Chosen } from './period.ts';
import { filePath, sharesQuery } from './queries.ts';
import { Choice, Files, Report, States } from './Report.tsx';
import { childrenOf, parentsOf, type Share } from './shares.ts';
import { useWords } from './useWords.ts';
import classes from './Report.module.css';

export function ShareHistory({ chosen }: { chosen: Chosen }) {
  const { t, time } = useWords();
  const query = useQuery(sharesQuery(chosen));
  const [stated, setParent] = useState('');
  const parents = query.data ? parentsOf(query.data.results) : [];
  const parent = parents.includes(stated) ? stated : (parents[0] ?? '');
  const controls = (
    <>
      {parents.length > 1 && (
        <Choice label={t('reports.below')} value={parent} values={parents.map((value) => ({ value, label: t('reports.childrenOf', { name: value }) }))} onChange={setParent} />
      )}
      {query.data && <Files paths={[{ form: 'CSV', path: filePath('shares', chosen, '', 'csv', query.data.bounds) }]} />}
    </>
  );
  return (
    <Report title={t('reports.shares')} about={t('reports.sharesAbout')} controls={controls}>
      <States query={query} isEmpty={({ results }) => results.length === 0} empty={t('reports.noTree')} height={320}>
        {(answer) => (
          <>
            <History answer={answer} parent={parent} stale={query.isPlaceholderData} />
            {answer.bounds.from === answer.earliest && <p className="cv-soft">{t('reports.sharesSince', { time: time(answer.earliest) })}</p>}
          </>
        )}
      </States>
    </Report>
  );
}

function History({ answer, parent, stale }: { answer: Shares; parent: string; stale: boolean }) {
  const { t, hours, percent, duration, count } = useWords();
  const children = childrenOf(answer.results, parent, t('reports.anotherTeam'), t('reports.others.queue'), CATEGORIES.length);
  const step = Math.max(1, (answer.times[1] ?? 1) - (answer.times[0] ?? 0));
  const lines = children.map(({ key, label, shares }, i) => ({
    id: key, label, look: CATEGORIES[i] ?? ('c7' as const), stacked: true, values: shares.map((share) => (share === null ? null : share * 100)),
  }));
  const decides = answer.results.some((row) => row.node === parent && row.decides);
  return (
    <>
      <SeriesChart
        label={t('reports.shares')}
        error={null}
        onRetry={() => undefined}
        chart={{ times: answer.times, step, lines }}
        format={(value) => percent(value / 100)}
        axis={(value) => percent(value / 100)}
      />
      <div className={classes['gap']}>
        <DataTable<Share>
          caption={t('reports.shares')}
          rows={children}
          rowKey={({ key }) => key}
          stale={stale}
          columns={[
            { id: 'name', header: t('reports.by.queue'), cell: ({ label }) => label },
            { id: 'weight', header: t('reports.weight'), align: 'end', cell: ({ weight }) => count(weight) },
            { id: 'entitled', header: t('reports.entitled'), align: 'end', cell: ({ entitled }) => percent(entitled) },
            { id: 'share', header: t('reports.share'), align: 'end', cell: ({ shares }) => percent(shares.at(-1) ?? null) },
            { id: 'hours', header: t('reports.counted'), align: 'end', cell: (row) => hours(row.hours.at(-1) ?? 0) },
          ]}
        />
      </div>
      <p className={classes['note']}>{t(decides ? 'reports.decides' : 'reports.decidesNot', { time: duration(answer.half_life_s), name: parent })}</p>
    </>
  );
}
