/** The GPUs of all clusters in one view, in the same colours: who is on which, what is held, what is free. */
import { Skeleton } from '@mantine/core';
import { useQueries, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { Cluster, GpuMap, NodeGpus, NodeUses } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useGo } from '../scope/useScope.ts';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { cellsOf, type ColourBy, freeOf, legendOf, type MapNode } from './cells.ts';
import { GpuCanvas } from './GpuCanvas.tsx';
import { GpuGroups } from './GpuGroups.tsx';
import { IdleGpus } from './IdleGpus.tsx';
import classes from './GpuMap.module.css';
import { ColourSwitch, MapLegend } from './MapLegend.tsx';
import type { Hit } from './mapLayout.ts';
import { numbersOf, withUse } from './measured.ts';
import { gpuMapQuery, gpuUseQuery, idleGpusQuery } from './queries.ts';
import { StaleNote } from './StaleNote.tsx';

export function FleetGpuMap({ clusters }: { clusters: Cluster[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [by, setBy] = useState<ColourBy>('job');
  const [pointed, setPointed] = useState<Hit | null>(null);
  const read = useQueries({ queries: clusters.map(({ name }) => gpuMapQuery(name)), combine });
  const uses = useQueries({
    queries: clusters.map(({ name }) => ({ ...gpuUseQuery(name), enabled: by === 'use' })),
    combine: usesOf,
  });
  // That it has failed is said by the list of idle jobs above, which asks the same.
  const idle = useQuery({ ...idleGpusQuery, enabled: by === 'use' });
  const percent = idle.data?.percent;
  const isLoading = by === 'use' && idle.isPending;
  const maps = useMemo(
    () => read.map((map, i) => ({ ...map, nodes: isLoading ? undefined : map.nodes && withUse(map.nodes, uses[i], percent) })),
    [read, uses, percent, isLoading],
  );
  const stateOf = ({ cell: { look, measured } }: Hit) =>
    measured ? t('deferred:map.useOf', numbersOf(measured)) : look === 'use' ? '' : t(`deferred:map.look.${look}`);
  // Not anew as the pointer moves.
  const { cells, legend, hues } = useMemo(() => coloursOf(maps, by), [maps, by]);
  return (
    <>
      <IdleGpus />
      <GpuGroups />
      <Panel title={t('deferred:map.fleet')}>
        <div className={classes['bar']}>
          <ColourSwitch by={by} onChange={setBy} />
        </div>
        <MapLegend cells={cells} legend={legend} by={by} />
        <p className={classes['readout']}>{pointed ? textOf(pointed, stateOf(pointed)) : t('deferred:map.point')}</p>
        {clusters.map((cluster, i) => (
          <section key={cluster.name} className={classes['domain']} aria-label={cluster.name}>
            <h3>
              <Link to={`/fleet/${encodeURIComponent(cluster.name)}`}>{cluster.name}</Link>
            </h3>
            <StaleNote cluster={cluster} />
            {maps[i] && <One cluster={cluster.name} map={maps[i]} by={by} hues={hues} onPoint={setPointed} />}
          </section>
        ))}
      </Panel>
    </>
  );
}

interface Props {
  cluster: string;
  map: ReadMap;
  by: ColourBy;
  hues: ReadonlyMap<string, number>;
  onPoint: (hit: Hit | null) => void;
}

function One({ cluster, map: { nodes, error, refetch }, by, hues, onPoint }: Props) {
  const { t } = useTranslation(['translation', 'deferred']);
  const go = useGo();
  if (!nodes && error) return <Failed error={error} onRetry={refetch} />;
  if (!nodes) return <Skeleton height={40} aria-busy />;
  if (nodes.length === 0) return <p className="cv-soft">{t('home.noGpus')}</p>;
  return (
    <GpuCanvas
      label={t('deferred:map.of', { name: cluster, ...totalsOf(nodes) })}
      nodes={nodes}
      by={by}
      hues={hues}
      onPoint={onPoint}
      onOpen={({ cell: { pod } }) => go(pod ? `/jobs/${pod.id}` : `/fleet/${encodeURIComponent(cluster)}`)}
    />
  );
}

interface ReadMap {
  nodes: MapNode[] | undefined;
  error: Error | null;
  refetch: () => void;
}

function combine(results: UseQueryResult<GpuMap>[]): ReadMap[] {
  return results.map(({ data, error, refetch }) => ({ nodes: data?.nodes, error, refetch: () => void refetch() }));
}

function usesOf(results: UseQueryResult<NodeUses>[]): (NodeUses['nodes'] | undefined)[] {
  return results.map(({ data }) => data?.nodes);
}

function coloursOf(maps: ReadMap[], by: ColourBy) {
  const cells = maps.flatMap(({ nodes }) => nodes ?? []).flatMap((node) => cellsOf(node, by));
  const legend = legendOf(cells, by);
  return { cells, legend, hues: new Map(legend.map(({ key, hue }) => [key, hue])) };
}

function totalsOf(nodes: NodeGpus[]): Record<'used' | 'held' | 'free' | 'total', number> {
  const sum = (count: (node: NodeGpus) => number) => nodes.reduce((all, node) => all + count(node), 0);
  const held = sum(({ holds }) => holds.reduce((all, { gpus }) => all + gpus, 0));
  return { used: sum(({ requested }) => requested), held, free: sum(freeOf), total: sum(({ gpus }) => gpus) };
}

function textOf({ block: { node }, cell: { pod, look, measured } }: Hit, state: string): string {
  const place = [node.name, node.model].filter(Boolean).join(' · ');
  if (!pod) return `${place} · ${state}`;
  if (measured) return `${place} · ${pod.namespace}/${pod.name} · ${state}`;
  const part = look === 'held' ? state : `${pod.role ?? ''} ${String(pod.index ?? '')}`;
  return `${place} · ${pod.namespace}/${pod.name} ${part} · ${pod.queue || '–'}`;
}
