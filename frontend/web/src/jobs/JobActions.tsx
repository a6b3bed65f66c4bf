/** What may be done to a job: each action asks first; what cannot be done now says why. */
import { ActionIcon, Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ArrowRightLeft, ChevronsUp, Copy, EllipsisVertical, type LucideIcon, Pause, Play, RotateCcw, Scaling, Trash2, Undo2 } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { meQuery } from '../api/me.ts';
import type { Job } from '../api/types.ts';
import type { Words } from '../fleet/words.ts';
import { useGo } from '../scope/useScope.ts';
import { polished } from '../ui/serverText.ts';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsToAct } from './commands.ts';
import { obstacleOf, ORDERS, type OrderName, RIGHTS, type Steering, STEERING } from './orders.ts';
import { useJobAction } from './queries.ts';
import type { Action } from './states.ts';
import classes from './JobActions.module.css';

const OrderDialog = lazy(async () => ({ default: (await import('./OrderDialog.tsx')).OrderDialog }));

const ICONS: Record<OrderName, LucideIcon> = {
  suspend: Pause,
  resume: Play,
  priority: ChevronsUp,
  move: ArrowRightLeft,
  scale: Scaling,
  preempt: Undo2,
  resubmit: RotateCcw,
  delete: Trash2,
};

interface Props {
  job: Job;
  onDeleted?: () => void;
}

export function JobActions({ job, onDeleted }: Props) {
  const { t } = useTranslation();
  const go = useGo();
  const [asked, setAsked] = useState<OrderName | null>(null);
  const close = () => setAsked(null);
  return (
    <>
      <Menu position="bottom-end" width={250}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t('jobs.actionsFor', { name: job.name })}>
            <EllipsisVertical size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {ORDERS.filter((action) => action !== 'delete').map((action) => (
            <ActionItem key={action} action={action} job={job} onAsk={() => setAsked(action)} />
          ))}
          <Menu.Item leftSection={<Copy size={15} aria-hidden />} onClick={() => go(`/submit?clone=${job.id}`)}>
            {t('jobs.clone')}
          </Menu.Item>
          <Menu.Divider />
          <ActionItem action="delete" job={job} onAsk={() => setAsked('delete')} />
        </Menu.Dropdown>
      </Menu>
      {asked && !isSteering(asked) && <Ask action={asked} job={job} onClose={close} onDeleted={onDeleted} />}
      <Suspense>
        {asked && isSteering(asked) && (
          <OrderDialog action={asked} ids={[job.id]} name={job.name} roles={Object.keys(job.size ?? {})} onClose={close} />
        )}
      </Suspense>
    </>
  );
}

const isSteering = (action: OrderName): action is Steering => (STEERING as readonly OrderName[]).includes(action);

function ActionItem({ action, job, onAsk }: { action: OrderName; job: Job; onAsk: () => void }) {
  const { t, i18n } = useTranslation();
  const { data: me } = useQuery(meQuery);
  const obstacle = me?.can[RIGHTS[action]] ? whyNot(job, action, { t, language: i18n.language }) : t('jobs.notAllowed');
  const allowed = obstacle === '';
  const Icon = ICONS[action];
  return (
    <Menu.Item
      aria-disabled={!allowed}
      className={allowed ? '' : (classes['off'] ?? '')}
      data-disabled={!allowed || undefined}
      closeMenuOnClick={allowed}
      {...(action === 'delete' && allowed ? { color: 'red' } : {})}
      leftSection={<Icon size={15} aria-hidden />}
      onClick={() => allowed && onAsk()}
    >
      {t(`jobs.action.${action}`)}
      {!allowed && <span className={classes['why']}>{obstacle}</span>}
    </Menu.Item>
  );
}

/** Why this cannot be done to the job now; empty when it can. */
function whyNot(job: Job, action: OrderName, { t, language }: Words): string {
  const notNow = t('jobs.notNow', { state: t(`jobState.${job.state}`) });
  if (isSteering(action)) {
    const obstacle = obstacleOf(action, job);
    return obstacle === 'size' ? t('jobs.notScaled', { kind: job.kind }) : obstacle && notNow;
  }
  const reason = job.actions[action].reason;
  if (reason === '' || language === 'en') return polished(reason);
  return notNow;
}

interface AskProps {
  action: Action;
  job: Job;
  onClose: () => void;
  onDeleted: (() => void) | undefined;
}

function Ask({ action, job, onClose, onDeleted }: AskProps) {
  const { t } = useTranslation();
  const { mutate, isPending, error } = useJobAction(action, job, () => {
    onClose();
    if (action === 'delete') onDeleted?.();
  });
  return (
    <ConfirmDialog
      title={t(`jobs.ask.${action}.title`, { name: job.name })}
      body={t(`jobs.ask.${action}.body`)}
      action={t(`jobs.action.${action}`)}
      dangerous={action === 'delete'}
      commands={commandsToAct(action, job)}
      pending={isPending}
      error={error}
      onConfirm={() => mutate()}
      onClose={onClose}
    />
  );
}
