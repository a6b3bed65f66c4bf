/** A cluster GPU by GPU: switch, node, cell; who is on each, and how large a gang still finds room. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { Cluster } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { byDomain, type Cell, cellsOf, type ColourBy, freeOf, largestGangs, legendOf, type MapNode } from './cells.ts';
import classes from './GpuMap.module.css';
import { ColourSwitch, MapLegend } from './MapLegend.tsx';
import { numbersOf, withUse } from './measured.ts';
import { pageOf } from './NodeTable.tsx';
import { gpuMapQuery, gpuUseQuery, idleGpusQuery } from './queries.ts';
import { StaleNote } from './StaleNote.tsx';
import { isReachable } from './totals.ts';

export function GpuMap({ name, cluster }: { name: string; cluster: Cluster | undefined }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [by, setBy] = useState<ColourBy>('job');
  const { data, error, refetch } = useQuery(gpuMapQuery(name));
  const use = useQuery({ ...gpuUseQuery(name), enabled: by === 'use' });
  const idle = useQuery({ ...idleGpusQuery, enabled: by === 'use' });
  const isLoading = by === 'use' && idle.isPending;
  const nodes = isLoading ? undefined : data && withUse(data.nodes, use.data?.nodes, idle.data?.percent);
  const cells = nodes?.flatMap((node) => cellsOf(node, by)) ?? [];
  const legend = legendOf(cells, by);
  const hues = new Map(legend.map(({ key, hue }) => [key, hue]));
  return (
    <Panel title={t('deferred:map.title')}>
      <StaleNote cluster={cluster} />
      <div className={classes['bar']}>
        <ColourSwitch by={by} onChange={setBy} />
        {data && (!cluster || isReachable(cluster)) && <Gangs nodes={data.nodes} />}
      </div>
      {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
      {((!data && !error) || (data && isLoading)) && <Skeleton height={120} />}
      {data?.nodes.length === 0 && <p className="cv-soft">{t('home.noGpus')}</p>}
      {nodes && nodes.length > 0 && <MapLegend cells={cells} legend={legend} by={by} />}
      {by === 'use' && !use.data && use.error && <Failed error={use.error} onRetry={() => void use.refetch()} />}
      {by === 'use' && !idle.data && idle.error && <Failed error={idle.error} onRetry={() => void idle.refetch()} />}
      {by === 'use' && use.data?.nodes.length === 0 && <p className="cv-soft">{t('deferred:map.notRead')}</p>}
      {nodes && byDomain(nodes).map((each) => <Domain key={each.domain} {...each} cluster={name} by={by} hues={hues} />)}
    </Panel>
  );
}

function Gangs({ nodes }: { nodes: MapNode[] }) {
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

type Hues = ReadonlyMap<string, number>;

interface DomainProps {
  cluster: string;
  domain: string;
  nodes: MapNode[];
  by: ColourBy;
  hues: Hues;
}

function Domain({ cluster, domain, nodes, by, hues }: DomainProps) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <section className={classes['domain']} aria-label={domain || t('deferred:map.noDomain')}>
      <h3>{domain || t('deferred:map.noDomain')}</h3>
      <div className={classes['nodes']}>
        {nodes.map((node) => (
          <NodeBox key={node.name} cluster={cluster} node={node} by={by} hues={hues} />
        ))}
      </div>
    </section>
  );
}

function NodeBox({ cluster, node, by, hues }: { cluster: string; node: MapNode; by: ColourBy; hues: Hues }) {
  const { t } = useTranslation(['translation', 'deferred']);
  return (
    <article className={classes['node']} data-off={!node.ready || node.unschedulable} aria-label={node.name}>
      <p>
        <Link to={pageOf({ cluster, name: node.name })} title={`${node.name} ${node.model}`}>
          {node.name}
        </Link>
        <span className="cv-numbers">{t('deferred:map.freeOf', { free: freeOf(node), total: node.gpus })}</span>
      </p>
      <div className={classes['cells']}>
        {cellsOf(node, by).map((cell, i) => (
          <CellBox key={i} cell={cell} hue={hues.get(cell.key)} />
        ))}
      </div>
    </article>
  );
}

function CellBox({ cell: { look, pod, key, measured }, hue }: { cell: Cell; hue: number | undefined }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const shared = { className: classes['cell'] ?? '', 'data-look': look, 'data-hue': hue, 'data-use': look === 'use' ? key : undefined };
  const use = measured && t('deferred:map.useOf', numbersOf(measured));
  if (use && !pod) return <span {...shared} title={use} />;
  if (use && pod) {
    const label = `${pod.namespace}/${pod.name} · ${use}`;
    return <Link to={`/jobs/${pod.id}`} {...shared} title={label} aria-label={label} />;
  }
  if (!pod) return <span {...shared} data-fragment={key === 'fragment'} title={t(`deferred:map.look.${look}`)} />;
  const part = pod.role === undefined ? t('deferred:map.look.held') : `${pod.role} ${String(pod.index)}`;
  const label = `${pod.namespace}/${pod.name} ${part} · ${pod.queue || '–'}`;
  return <Link to={`/jobs/${pod.id}`} {...shared} title={label} aria-label={label} />;
}
