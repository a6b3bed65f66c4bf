/** The cells of one quota that have a line for every resource shown: bar, use, min, max; and what is wrong with them. */
import { CircleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { QuotaNode } from '../api/types.ts';
import { shortResource } from '../fleet/resources.ts';
import { AmountInput } from './AmountInput.tsx';
import { JOBS, quantityOf } from './amounts.ts';
import type { Bound, Quota } from './model.ts';
import { QuotaBar } from './QuotaBar.tsx';
import { type Fault, faultAt } from './rules.ts';
import classes from './QuotaGrid.module.css';

interface Props {
  quota: Quota;
  /** As it was loaded; undefined for a new one. */
  before: Quota | undefined;
  node: QuotaNode | undefined;
  resources: string[];
  scales: Record<string, number>;
  faults: Fault[];
  /** What else the server has against it. */
  words: string[];
  obstacle: string;
  onChange: (bound: Bound, resource: string, text: string) => void;
}

export function QuotaLines({ quota, before, node, resources, scales, faults, words, obstacle, onChange }: Props) {
  const { path } = quota;
  const faultsId = `faults-of-${path.replaceAll('/', '-')}`;
  const wrong = (bound: Bound, resource: string) => faultAt(faults, path, bound, resource) !== undefined;
  const cell = (bound: Bound) => (
    <div role="gridcell" className={classes['cell']}>
      {resources.map((resource) => (
        <div key={resource} className={classes['line']}>
          <AmountInput
            bound={bound}
            resource={resource}
            path={path}
            text={quota[bound][resource] ?? ''}
            changed={quota[bound][resource] !== before?.[bound][resource]}
            wrong={wrong(bound, resource)}
            describedBy={faultsId}
            obstacle={obstacle}
            onChange={(text) => onChange(bound, resource, text)}
          />
        </div>
      ))}
    </div>
  );
  return (
    <>
      <div role="gridcell" className={classes['cell']}>
        {resources.map((resource) => (
          <div key={resource} className={classes['line']} data-bar>
            {resources.length > 1 && <span className={classes['resource']}>{resourceName(resource)}</span>}
            <QuotaBar
              quota={quota}
              resource={resource}
              use={node?.resources[resource]}
              scale={scales[resource] ?? 1}
              wrong={(bound) => wrong(bound, resource)}
              disabled={obstacle !== ''}
              onChange={(bound, text) => onChange(bound, resource, text)}
            />
            <Used node={node} resource={resource} />
          </div>
        ))}
        <Wrong id={faultsId} faults={faults.filter((each) => each.path === path)} words={words} />
      </div>
      {cell('min')}
      {cell('max')}
    </>
  );
}

export function resourceName(resource: string): string {
  return resource === JOBS ? 'jobs' : shortResource(resource);
}

function Used({ node, resource }: { node: QuotaNode | undefined; resource: string }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const { used = 0, requested = 0 } = node?.resources[resource] ?? {};
  const wanted = requested - used;
  return (
    <span className={classes['used']}>
      <b>{quantityOf(resource, used)}</b>
      {wanted > 0 && <span>{t('deferred:quotas.wanted', { amount: quantityOf(resource, wanted) })}</span>}
    </span>
  );
}

function Wrong({ id, faults, words }: { id: string; faults: Fault[]; words: string[] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const amount = (resource: string, units?: number) => (units === undefined ? t('deferred:quotas.none') : quantityOf(resource, units));
  const texts = faults.map(({ code, bound, resource, have, limit }) =>
    t(`deferred:quotas.fault.${code}`, { bound, resource: resourceName(resource), have: amount(resource, have), limit: amount(resource, limit) }),
  );
  return (
    <div id={id} className={classes['wrong']} aria-live="polite">
      {[...texts, ...words].map((text) => (
        <p key={text}>
          <CircleAlert size={13} aria-hidden />
          {text}
        </p>
      ))}
    </div>
  );
}
