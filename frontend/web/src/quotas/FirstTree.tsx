/** There is no tree yet: what that means, how to bring one, and a first one made of what the fleet has. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ListTree } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import { useMay } from '../api/me.ts';
import type { Cluster } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import { Empty } from '../ui/Message.tsx';
import { Refusal } from '../ui/Refusal.tsx';
import { inOrder, quantityOf } from './amounts.ts';
import { ImportButton } from './ImportButton.tsx';
import { useCreate } from './queries.ts';

export function FirstTree() {
  const { t } = useTranslation(['translation', 'deferred']);
  const may = useMay('quota');
  const { data } = useQuery(clustersQuery);
  const { mutate, isPending, error } = useCreate();
  const obstacle = may ? (data?.results.length === 0 ? t('deferred:quotas.noClusters') : '') : t('deferred:quotas.mayNot');
  return (
    <Empty title={t('deferred:quotas.emptyTitle')} icon={ListTree}>
      <p>
        {t('deferred:quotas.emptyBody')} <code className="cv-mono">convoy apply -f tree.yaml</code>
      </p>
      <Refusal error={error} />
      <Button
        size="xs"
        loading={isPending}
        data-disabled={obstacle !== '' || undefined}
        aria-disabled={obstacle !== ''}
        title={obstacle || undefined}
        onClick={() => obstacle === '' && data && mutate(firstTree(data.results))}
      >
        {t('deferred:quotas.create')}
      </Button>
      {obstacle && <p>{obstacle}</p>}
      <ImportButton obstacle={may ? '' : t('deferred:quotas.mayNot')} onSaved={() => undefined} />
    </Empty>
  );
}

/** A root with everything the clusters can give, to put quotas below. */
function firstTree(clusters: Cluster[]): Record<string, unknown> {
  const total: Record<string, number> = {};
  for (const { capacity } of clusters) {
    for (const [resource, { allocatable }] of Object.entries(capacity)) total[resource] = (total[resource] ?? 0) + allocatable;
  }
  const whole = inOrder(Object.keys(total))
    .filter((resource) => resource !== 'pods' && (total[resource] ?? 0) > 0)
    .map((resource) => [resource, quantityOf(resource, total[resource] ?? 0)]);
  const bounds = Object.fromEntries(whole) as Record<string, string>;
  return {
    apiVersion: 'scheduling.sigs.k8s.io/v1beta1',
    kind: 'ElasticQuotaTree',
    metadata: { name: 'elasticquotatree', namespace: 'kube-system' },
    spec: { root: { name: 'root', min: bounds, max: bounds } },
  };
}
