/** Which part of the fleet is looked at, on every page: a namespace, a queue, a cluster. Fetched after the frame, like the menus. */
import { ActionIcon, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useLocation } from 'react-router';

import { clustersQuery, namespacesQuery, queuesQuery } from '../fleet/queries.ts';
import { EVERYTHING, SCOPE_KEYS, type ScopeKey } from '../scope/scope.ts';
import { useChangeScope, useScope } from '../scope/useScope.ts';
import classes from './ScopeBar.module.css';

/** What narrows each room's page; the others only carry it along. */
const NARROWED_BY: Record<string, readonly ScopeKey[]> = {
  fleet: SCOPE_KEYS,
  jobs: SCOPE_KEYS,
  incidents: SCOPE_KEYS,
  events: SCOPE_KEYS,
  quotas: ['namespace', 'queue'],
  policies: ['namespace'],
  audit: ['namespace', 'cluster'],
};

const ANY = { namespace: 'scope.anyNamespace', queue: 'scope.anyQueue', cluster: 'scope.anyCluster' } as const;

export function ScopeBar() {
  const { t } = useTranslation();
  const scope = useScope();
  const change = useChangeScope();
  const room = useLocation().pathname.split('/')[1] ?? '';
  const [opened, setOpened] = useState(false);
  const choices = useChoices(opened);
  return (
    <div className={classes['bar']} role="group" aria-label={t('scope.label')}>
      {SCOPE_KEYS.map((key) => {
        const idle = !(NARROWED_BY[room] ?? []).includes(key);
        return (
          <Select
            key={key}
            size="xs"
            miw={90}
            flex="1 1 150px"
            aria-label={t(`scope.${key}`)}
            placeholder={t(ANY[key])}
            title={idle ? t('scope.idle') : undefined}
            data-idle={idle || undefined}
            searchable
            onFocus={() => setOpened(true)}
            clearable
            nothingFoundMessage={t('scope.nothing')}
            comboboxProps={{ width: 'max-content', position: 'bottom-start' }}
            value={scope[key] || null}
            data={[...new Set([...(scope[key] ? [scope[key]] : []), ...choices[key]])].sort()}
            onChange={(value) => change({ [key]: value ?? '' })}
          />
        );
      })}
      {SCOPE_KEYS.some((key) => scope[key]) && (
        <ActionIcon variant="subtle" color="gray" size={26} aria-label={t('scope.whole')} title={t('scope.whole')} onClick={() => change(EVERYTHING)}>
          <X size={15} />
        </ActionIcon>
      )}
    </div>
  );
}

/** Fetched when the menu is about to open. */
function useChoices(wanted: boolean): Record<ScopeKey, string[]> {
  const namespaces = useQuery({ ...namespacesQuery, enabled: wanted });
  const queues = useQuery({ ...queuesQuery, enabled: wanted });
  const clusters = useQuery({ ...clustersQuery, enabled: wanted });
  return {
    namespace: namespaces.data?.results.map(({ value }) => value) ?? [],
    queue: queues.data?.results.map(({ path }) => path) ?? [],
    cluster: clusters.data?.results.map(({ name }) => name) ?? [],
  };
}
