/** Who lent to whom: a row for each lender, a column for each borrower, of the children of one node of the quota tree. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import type { Lending } from '../api/types.ts';
import { matrixOf, parentsOf } from './lending.ts';
import type { Chosen } from './period.ts';
import { filePath, lendingQuery } from './queries.ts';
import { Choice, Files, Report, States } from './Report.tsx';
import { useWords } from './useWords.ts';
import classes from './Report.module.css';

const STRONG = 0.5;

export function LentHours({ chosen }: { chosen: Chosen }) {
  const { t, hours } = useWords();
  const query = useQuery(lendingQuery(chosen));
  const [stated, setParent] = useState('');
  const parents = query.data ? parentsOf(query.data.results) : [];
  const parent = parents.includes(stated) ? stated : (parents[0] ?? '');
  const controls = (
    <>
      {parents.length > 1 && (
        <Choice label={t('reports.below')} value={parent} values={parents.map((value) => ({ value, label: t('reports.childrenOf', { name: value }) }))} onChange={setParent} />
      )}
      <Files paths={[{ form: 'CSV', path: filePath('lending', chosen, '', 'csv') }]} />
    </>
  );
  return (
    <Report title={t('reports.lending')} about={t('reports.lendingAbout')} controls={controls}>
      <States query={query} isEmpty={({ results }) => results.length === 0} empty={t('reports.lendingEmpty')}>
        {(answer) => (
          <>
            <Table answer={answer} parent={parent} />
            {answer.without_tree_hours > 0 && <p className="cv-soft">{t('reports.withoutTree', { hours: hours(answer.without_tree_hours) })}</p>}
          </>
        )}
      </States>
    </Report>
  );
}

function Table({ answer, parent }: { answer: Lending; parent: string }) {
  const { t, hours } = useWords();
  const matrix = matrixOf(answer.results, parent);
  const shortOf = (path: string) => (path.startsWith(`${parent}/`) ? path.slice(parent.length + 1) : path) || t('reports.anotherTeam');
  const lenderOf = (path: string) => (path === parent ? t('reports.unpromised') : shortOf(path));
  const borrowerOf = (path: string) => (path === parent ? t('reports.beyond', { name: parent }) : shortOf(path));
  return (
    // It scrolls, so the keyboard has to get there.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={classes['scroller']} role="region" aria-label={t('reports.lending')} tabIndex={0}>
      <table className={classes['matrix']}>
        <caption className="cv-hidden">{t('reports.lendingCaption', { name: parent })}</caption>
        <thead>
          <tr>
            <th scope="col">{t('reports.lenderBorrower')}</th>
            {matrix.borrowers.map((borrower) => (
              <th key={borrower} scope="col" title={borrower}>
                {borrowerOf(borrower)}
              </th>
            ))}
            <th scope="col">{t('reports.lentInAll')}</th>
          </tr>
        </thead>
        <tbody>
          {matrix.lenders.map((lender) => (
            <tr key={lender}>
              <th scope="row" title={lender}>
                {lenderOf(lender)}
              </th>
              {matrix.borrowers.map((borrower) => (
                <td key={borrower} data-strong={matrix.of(lender, borrower) > matrix.most * STRONG}>
                  {matrix.of(lender, borrower) > 0 ? hours(matrix.of(lender, borrower)) : '–'}
                </td>
              ))}
              <td data-sum>{hours(matrix.lent(lender))}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">{t('reports.borrowedInAll')}</th>
            {matrix.borrowers.map((borrower) => (
              <td key={borrower} data-sum>
                {hours(matrix.borrowed(borrower))}
              </td>
            ))}
            <td data-sum>{hours(matrix.total)}</td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
