/** The fleet's GPUs by model, and of each model by cluster: how many there are and how many are asked for. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import type { GpuModel } from '../api/types.ts';
import { Link } from '../scope/Link.tsx';
import { useScope } from '../scope/useScope.ts';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { StackedBar } from '../ui/StackedBar.tsx';
import classes from './FleetPanels.module.css';
import { clustersQuery, gpuModelsQuery } from './queries.ts';
import { isReachable } from './totals.ts';

export function GpuModels() {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(gpuModelsQuery);
  const scope = useScope();
  const found = data?.results.filter(({ cluster }) => !scope.cluster || cluster === scope.cluster) ?? [];
  const clusters = useQuery(clustersQuery).data?.results ?? [];
  const away = new Set(clusters.filter((each) => !isReachable(each)).map(({ name }) => name));
  const models = [...new Set(found.map(({ model }) => model))];
  return (
    <Panel title={t('home.models')}>
      <div className={classes['fill']}>
        {!data && error && <Failed error={error} onRetry={() => void refetch()} />}
        {!data && !error && <Skeleton height={110} />}
        {data && found.length === 0 && <p className="cv-soft">{t('home.noGpus')}</p>}
        {models.map((model) => (
          <Model
            key={model}
            model={model || t('home.unknownModel')}
            parts={found.filter((part) => part.model === model)}
            away={away}
          />
        ))}
      </div>
    </Panel>
  );
}

function Model({ model, parts, away }: { model: string; parts: GpuModel[]; away: Set<string> }) {
  const { t } = useTranslation();
  const sum = (amount: (part: GpuModel) => number) => parts.reduce((all, part) => all + (away.has(part.cluster) ? 0 : amount(part)), 0);
  const [total, used] = [sum((part) => part.allocatable), sum((part) => part.requested)];
  return (
    <div className={classes['model']}>
      <div className={classes['line']}>
        <strong>{model}</strong>
        <span className="cv-numbers">{t('home.usedOf', { used, total })}</span>
      </div>
      <StackedBar
        label={t('gpus.label', { name: model, used, held: 0, free: total - used, total })}
        total={total}
        segments={[{ look: 'used', value: used }]}
      />
      <p className={classes['parts']}>
        {parts.map(({ cluster, allocatable, requested }) => (
          <Link key={cluster} to={`/fleet/${encodeURIComponent(cluster)}`}>
            {cluster}{' '}
            <span className="cv-numbers">
              {away.has(cluster) ? t('home.away', { count: allocatable }) : `${requested}/${allocatable}`}
            </span>
          </Link>
        ))}
      </p>
    </div>
  );
}
