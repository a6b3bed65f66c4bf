/** A cluster GPU by GPU: switch, node, cell; who is on each, and how large a gang still finds room. */
import { SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { Cluster, NodeGpus } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { byDomain, type Cell, cellsOf, type ColourBy, hueOf, largestGangs } from './cells.ts';
import classes from './GpuMap.module.css';
import { gpuMapQuery } from './queries.ts';
import { StaleNote } from './StaleNote.tsx';
import { isReachable } from './totals.ts';

const BY: ColourBy[] = ['job', 'queue', 'namespace', 'fragments'];

export function GpuMap({ name, cluster }: { name: string; cluster: Cluster | undefined }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [by, setBy] = useState<ColourBy>('job');
  const { data, error, refetch } = useQuery(gpuMapQuery(name));
  return (
    <Panel title={t('deferred:map.title')}>
      <StaleNote cluster={cluster} />
      <div className={classes['bar']}>
        <SegmentedControl
          size="xs"
          aria-label={t('deferred:map.colour')}
          value={by}
          onChange={(next) => setBy(BY.find((each) => each === next) ?? 'job')}
          data={BY.map((value) => ({ value, label: t(`deferred:map.by.${value}`) }))}
        />
        {data && (!cluster || isReachable(cluster)) && <Gangs nodes={data.nodes} />}
      </div>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={120} />}
      {data?.nodes.length === 0 && <p className="cv-soft">{t('home.noGpus')}</p>}
      {data && byDomain(data.nodes).map((each) => <Domain key={each.domain} {...each} by={by} />)}
    </Panel>
  );
}

function Gangs({ nodes }: { nodes: NodeGpus[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const fits = largestGangs(nodes);
  return (
    <p className={classes['gangs']} title={t('deferred:map.byGpusAlone')}>
      {t('deferred:map.fitsNow')}
      {fits.map(({ size, pods }) => (
        <span key={size} data-none={pods === 0}>
          <strong>{pods}</strong> × {t('deferred:map.podsOf', { count: size })}
        </span>
      ))}
    </p>
  );
}

function Domain({ domain, nodes, by }: { domain: string; nodes: NodeGpus[]; by: ColourBy }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <section className={classes['domain']} aria-label={domain || t('deferred:map.noDomain')}>
      <h3>{domain || t('deferred:map.noDomain')}</h3>
      <div className={classes['nodes']}>
        {nodes.map((node) => (
          <NodeBox key={node.name} node={node} by={by} />
        ))}
      </div>
    </section>
  );
}

function NodeBox({ node, by }: { node: NodeGpus; by: ColourBy }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const free = node.ready ? Math.max(node.gpus - node.requested, 0) : 0;
  return (
    <article className={classes['node']} data-off={!node.ready || node.unschedulable} aria-label={node.name}>
      <p>
        <span title={`${node.name} ${node.model}`}>{node.name}</span>
        <span className="cv-numbers">{t('deferred:map.freeOf', { free, total: node.gpus })}</span>
      </p>
      <div className={classes['cells']}>
        {cellsOf(node, by).map((cell, i) => (
          <CellBox key={i} cell={cell} />
        ))}
      </div>
    </article>
  );
}

function CellBox({ cell: { look, pod, key } }: { cell: Cell }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const shared = { className: classes['cell'] ?? '', 'data-look': look, 'data-hue': key ? hueOf(key) : undefined };
  if (!pod || pod.id === '') {
    return <span {...shared} data-fragment={key === 'fragment'} title={t(`deferred:map.look.${pod ? 'stranger' : look}`)} />;
  }
  const label = `${pod.namespace}/${pod.name} ${pod.role} ${pod.index} · ${pod.queue || '–'}`;
  return <Link to={`/jobs/${pod.id}`} {...shared} title={label} aria-label={label} />;
}
