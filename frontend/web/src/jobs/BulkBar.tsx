/** What may be done with the jobs that are selected: previewed job by job, then done, with what was refused. */
import { Button, Menu } from '@mantine/core';
import { ChevronDown } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useQuery } from '@tanstack/react-query';

import { meQuery } from '../api/me.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { type OrderName, RIGHTS, STEERING } from './orders.ts';
import classes from './ListTools.module.css';

const OrderDialog = lazy(async () => ({ default: (await import('./OrderDialog.tsx')).OrderDialog }));
const SWITCHES: OrderName[] = ['suspend', 'resume', 'delete'];

export function BulkBar({ ids, onClear }: { ids: string[]; onClear: () => void }) {
  const { t } = useTranslation();
  const { data: me } = useQuery(meQuery);
  const [asked, setAsked] = useState<OrderName | null>(null);
  if (ids.length === 0) return null;
  const may = (action: OrderName) => me?.can[RIGHTS[action]] ?? false;
  return (
    <div className={classes['bar']} role="toolbar" aria-label={t('list.selected', { count: ids.length })}>
      <strong className="cv-numbers">{t('list.selected', { count: ids.length })}</strong>
      {SWITCHES.map((action) => (
        <ActionButton
          key={action}
          obstacle={may(action) ? '' : t('jobs.notAllowed')}
          size="compact-xs"
          {...(action === 'delete' ? { color: 'red', variant: 'light' } : { variant: 'default' })}
          onClick={() => setAsked(action)}
        >
          {t(`jobs.action.${action}`)}
        </ActionButton>
      ))}
      <Menu width={200}>
        <Menu.Target>
          <Button size="compact-xs" variant="default" rightSection={<ChevronDown size={13} aria-hidden />}>
            {t('jobs.more')}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {STEERING.map((action) => (
            <Menu.Item key={action} disabled={!may(action)} onClick={() => setAsked(action)}>
              {t(`jobs.action.${action}`)}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Button size="compact-xs" variant="subtle" color="gray" onClick={onClear}>
        {t('list.unselect')}
      </Button>
      <Suspense>
        {asked && (
          <OrderDialog
            action={asked}
            ids={ids}
            onClose={(done) => {
              setAsked(null);
              if (done) onClear();
            }}
          />
        )}
      </Suspense>
    </div>
  );
}
