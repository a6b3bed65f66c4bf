/** What becomes of each job when something changes, by name: before and after, as the scheduler's own cycle says. */
import { ArrowRight } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { WhatIf } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { type Column, DataTable } from '../ui/DataTable.tsx';
import { reasonWords } from './words.ts';

type Difference = WhatIf['differences'][number];

/** An address is longer than a name, and every one of 10,000 jobs would make the page slow: the first are shown. */
const MOST = 500;

export function OutcomeTable({ caption, differences }: { caption: string; differences: Difference[] }) {
  const { t } = useTranslation('deferred');
  const columns: Column<Difference>[] = [
    { id: 'job', header: t('incident.job'), cell: (row) => <Name of={row} /> },
    { id: 'before', header: t('whatif.before'), cell: (row) => <Outcome job={row} of={row.before} /> },
    { id: 'becomes', header: t('whatif.becomes'), quiet: true, cell: () => <ArrowRight size={14} aria-hidden /> },
    { id: 'after', header: t('whatif.after'), cell: (row) => <Outcome job={row} of={row.after} /> },
  ];
  return (
    <>
      <DataTable
        caption={caption}
        columns={columns}
        rows={differences.slice(0, MOST)}
        rowKey={({ id, kind, namespace, name }) => id || `${kind}/${namespace}/${name}`}
      />
      {differences.length > MOST && <p className="cv-soft">{t('whatif.more', { count: differences.length - MOST })}</p>}
    </>
  );
}

function Name({ of: { id, kind, namespace, name } }: { of: Difference }) {
  return (
    <>
      {id ? <Link to={`/jobs/${id}`}>{name}</Link> : <strong>{name}</strong>}
      <div className="cv-soft">
        {namespace} · {kind}
      </div>
    </>
  );
}

function Outcome({ job, of: { outcome, cluster, reason } }: { job: Difference; of: Difference['before'] }) {
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const why = reason && reasonWords(reason, { ...job, cluster: cluster || null }, { t, language: i18n.language });
  const place = cluster === '' || outcome === 'Waits' ? '' : ` ${t('deferred:whatif.on', { cluster })}`;
  return (
    <>
      <strong>
        {t(`deferred:whatif.outcome.${outcome}`)}
        {place}
      </strong>
      {why && <div className="cv-soft">{why}</div>}
    </>
  );
}
