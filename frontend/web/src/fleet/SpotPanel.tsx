/** The pools of a cluster that its provider may take back, and the nodes that were: who ran there, what was saved and what was lost. */
import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import type { ReclaimOfNode, Spot } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Age } from '../ui/Age.tsx';
import { DataTable } from '../ui/DataTable.tsx';
import { formatDuration } from '../ui/duration.ts';
import { Panel } from '../ui/Panel.tsx';

const MOST = 20;
const SWEEP_MS = 30_000;

export function SpotPanel({ name }: { name: string }) {
  const { t, i18n, ready } = useTranslation('deferred', { useSuspense: false });
  const { data } = useQuery({
    queryKey: ['clusters', 'list', 'spot', name],
    queryFn: ({ signal }) => api.get<Spot>(`clusters/${encodeURIComponent(name)}/spot/`, { signal }),
    refetchInterval: SWEEP_MS,
  });
  if (!ready || !data || (data.pools.length === 0 && data.reclaims.length === 0)) return null;
  const number = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 });
  const pools = data.pools.map((pool) => t('spot.pool', { ...pool, name: pool.name }));
  return (
    <Panel title={t('spot.title')} note={pools.join(' · ')} flush={data.reclaims.length > 0}>
      {data.reclaims.length === 0 && <p className="cv-soft">{t('spot.none')}</p>}
      {data.reclaims.length > 0 && (
        <DataTable
          caption={t('spot.reclaims')}
          rows={data.reclaims.slice(0, MOST)}
          rowKey={({ node, at }) => `${node} ${at}`}
          columns={[
            { id: 'node', header: t('spot.node'), cell: ({ node, pool }) => (pool ? `${node} (${pool})` : node) },
            { id: 'at', header: t('spot.at'), cell: ({ at }) => <Age since={at} /> },
            { id: 'cause', header: t('spot.cause'), cell: ({ cause }) => cause },
            { id: 'notice', header: t('spot.notice'), cell: ({ notice_s: seconds }) => formatDuration(seconds, i18n.language) },
            { id: 'jobs', header: t('spot.jobs'), cell: (reclaim) => <Jobs reclaim={reclaim} /> },
            { id: 'saved', header: t('spot.saved'), align: 'end', cell: ({ saved, pods }) => `${saved}/${pods.length}` },
            { id: 'lost', header: t('spot.lost'), align: 'end', cell: ({ lost_gpu_minutes: minutes }) => number.format(minutes) },
          ]}
        />
      )}
    </Panel>
  );
}

/** Those that the reader may see; the others are counted with the pods. */
function Jobs({ reclaim }: { reclaim: ReclaimOfNode }) {
  const jobs = new Map(reclaim.pods.filter(({ job }) => job !== '').map(({ job, namespace, name }) => [job, `${namespace}/${name}`]));
  return [...jobs].map(([id, label], index) => (
    <Fragment key={id}>
      {index > 0 && ', '}
      <Link to={`/jobs/${id}`}>{label}</Link>
    </Fragment>
  ));
}
