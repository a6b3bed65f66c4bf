/** What may be done to a job: each action asks first; what cannot be done now says why. */
import { ActionIcon, Menu } from '@mantine/core';
import { EllipsisVertical, Pause, Play, Trash2, type LucideIcon } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import { useMay } from '../api/me.ts';
import type { Job } from '../api/types.ts';
import type { Words } from '../fleet/words.ts';
import { polished } from '../ui/serverText.ts';
import { ConfirmDialog } from '../ui/ConfirmDialog.tsx';
import { commandsToAct } from './commands.ts';
import { useJobAction } from './queries.ts';
import type { Action } from './states.ts';
import classes from './JobActions.module.css';

const ICONS: Record<Action, LucideIcon> = { suspend: Pause, resume: Play, delete: Trash2 };
const ACTIONS: Action[] = ['suspend', 'resume', 'delete'];

interface Props {
  job: Job;
  onDeleted?: () => void;
}

export function JobActions({ job, onDeleted }: Props) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<Action | null>(null);
  return (
    <>
      <Menu position="bottom-end" width={250}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t('jobs.actionsFor', { name: job.name })}>
            <EllipsisVertical size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {ACTIONS.map((action) => (
            <ActionItem key={action} action={action} job={job} onAsk={() => setAsked(action)} />
          ))}
        </Menu.Dropdown>
      </Menu>
      {asked && <Ask action={asked} job={job} onClose={() => setAsked(null)} onDeleted={onDeleted} />}
    </>
  );
}

function ActionItem({ action, job, onAsk }: { action: Action; job: Job; onAsk: () => void }) {
  const { t, i18n } = useTranslation();
  const obstacle = useMay(action) ? whyNot(job, action, { t, language: i18n.language }) : t('jobs.notAllowed');
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
function whyNot({ actions, state }: Job, action: Action, { t, language }: Words): string {
  const reason = actions[action].reason;
  if (reason === '' || language === 'en') return polished(reason);
  return t('jobs.notNow', { state: t(`jobState.${state}`) });
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
