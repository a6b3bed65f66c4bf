/** As whom the fleet asks a cluster, with which credentials, and what it lacks there; a fleet admin changes it here. */
import { Skeleton } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { api } from '../api/client.ts';
import { useMay } from '../api/me.ts';
import { refetch } from '../api/refetch.ts';
import type { ClusterDetail } from '../api/types.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { Failed } from '../ui/Message.tsx';
import { Panel } from '../ui/Panel.tsx';
import { ServerText } from '../ui/ServerText.tsx';
import { type AccessSetting, commandsOfAccess } from './commands.ts';
import { clusterQuery } from './queries.ts';
import classes from './ClusterAccess.module.css';

const PATHS = { people: 'impersonation', tokens: 'short-lived-tokens' } as const;

interface Wanted {
  setting: AccessSetting;
  on: boolean;
}

export function ClusterAccess({ name }: { name: string }) {
  const { t, ready } = useTranslation('deferred', { useSuspense: false });
  const { data, error, refetch: again } = useQuery(clusterQuery(name));
  if (!ready) return <Skeleton height={120} radius={8} aria-busy />;
  return (
    <Panel title={t('clusterAccess.title')}>
      {!data && error && <Failed error={error} onRetry={() => void again()} />}
      {!data && !error && <Skeleton height={64} aria-busy />}
      {data && <Settings cluster={data} />}
    </Panel>
  );
}

function Settings({ cluster }: { cluster: ClusterDetail }) {
  const { t } = useTranslation('deferred');
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const { impersonation, credentials } = cluster;
  const canAskAgain = credentials.on && !credentials.short_lived;
  return (
    <div className={classes['settings']}>
      <Setting of="people" on={impersonation} onChange={setWanted}>
        {t(impersonation ? 'clusterAccess.peopleOn' : 'clusterAccess.peopleOff')}
      </Setting>
      <Setting of="tokens" on={credentials.on} canAskAgain={canAskAgain} onChange={setWanted}>
        <Credentials of={credentials} />
      </Setting>
      <MissingRights cluster={cluster} />
      {wanted && <Ask wanted={wanted} name={cluster.name} onClose={() => setWanted(null)} />}
    </div>
  );
}

interface SettingProps {
  of: AccessSetting;
  on: boolean;
  canAskAgain?: boolean;
  onChange: (wanted: Wanted) => void;
  children: ReactNode;
}

function Setting({ of: setting, on, canAskAgain = false, onChange, children }: SettingProps) {
  const { t } = useTranslation('deferred');
  const { t: tMain } = useTranslation();
  const obstacle = useMay('join') ? '' : tMain('jobs.notAllowed');
  const title = t(`clusterAccess.${setting}`);
  const button = (text: string, next: boolean) => (
    <ActionButton size="xs" variant="default" obstacle={obstacle} label={`${title}: ${text}`} onClick={() => onChange({ setting, on: next })}>
      {text}
    </ActionButton>
  );
  return (
    <div className={classes['setting']} role="group" aria-label={title}>
      <div>
        <h3>
          {title} <span className={classes['state']}>{t(on ? 'clusterAccess.on' : 'clusterAccess.off')}</span>
        </h3>
        <p>{children}</p>
      </div>
      <div className={classes['buttons']}>
        {canAskAgain && button(t('clusterAccess.again'), true)}
        {button(t(on ? 'clusterAccess.turnOff' : 'clusterAccess.turnOn'), !on)}
      </div>
    </div>
  );
}

function Credentials({ of: { short_lived: isShortLived, expires_at: end, message } }: { of: ClusterDetail['credentials'] }) {
  const { t, i18n } = useTranslation('deferred');
  if (isShortLived && end) return t('clusterAccess.tokensUsed', { at: new Date(end).toLocaleString(i18n.language) });
  return (
    <>
      {t('clusterAccess.tokensNotUsed')} <ServerText text={message} />
    </>
  );
}

function MissingRights({ cluster }: { cluster: ClusterDetail }) {
  const { t } = useTranslation('deferred');
  const missing = cluster.permissions.filter(({ allowed }) => !allowed);
  if (missing.length === 0) return null;
  return (
    <div className={classes['missing']}>
      {t('clusterAccess.missing')}
      <ul>
        {missing.map(({ verb, resource, needed_for: what }) => (
          <li key={`${verb} ${resource} ${what}`}>
            <code>
              {verb} {resource}
            </code>{' '}
            {t('clusterAccess.neededFor', { what })}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Ask({ wanted: { setting, on }, name, onClose }: { wanted: Wanted; name: string; onClose: () => void }) {
  const { t } = useTranslation('deferred');
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => api.put<ClusterDetail>(`clusters/${encodeURIComponent(name)}/${PATHS[setting]}/`, { on }),
    onSuccess: () => {
      void refetch(client, 'clusters');
      onClose();
    },
  });
  const texts = `clusterAccess.ask.${setting}.${on ? 'on' : 'off'}` as const;
  return (
    <ConfirmDialog
      title={t(`${texts}.title`, { name })}
      body={t(`${texts}.body`)}
      action={t(on ? 'clusterAccess.turnOn' : 'clusterAccess.turnOff')}
      commands={commandsOfAccess(setting, on, name)}
      pending={change.isPending}
      error={change.error}
      onConfirm={() => change.mutate()}
      onClose={onClose}
    />
  );
}
