/** The queue of a quota: its state, how many of its jobs run and wait, the way to them, and what may be done to it. */
import { ActionIcon, Menu } from '@mantine/core';
import { CirclePause, CirclePlay, CircleStop, EllipsisVertical, Droplets, type LucideIcon } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

import type { QueueState, QuotaNode } from '../api/types.ts';
import { amountWords } from '../fleet/words.ts';
import { Link } from '../scope/Link.tsx';
import { StateBadge } from '../ui/StateBadge.tsx';
import { Term } from '../ui/Term.tsx';
import type { Tone } from '../ui/tones.ts';
import { JOBS } from './amounts.ts';
import type { QueueVerb } from './queries.ts';
import { QueueDialog } from './QueueDialog.tsx';
import classes from './QuotaGrid.module.css';

type Period = 'day' | 'week' | 'month' | 'quarter' | 'year';

interface Look {
  tone: Tone;
  icon: LucideIcon;
}

const LOOKS: Record<QueueState, Look> = {
  Open: { tone: 'good', icon: CirclePlay },
  Held: { tone: 'warn', icon: CirclePause },
  Draining: { tone: 'info', icon: Droplets },
  Stopped: { tone: 'bad', icon: CircleStop },
};

const VERBS: [QueueVerb, QueueState][] = [
  ['open', 'Open'],
  ['hold', 'Held'],
  ['drain', 'Draining'],
  ['stop', 'Stopped'],
];

export function QueueCell({ node }: { node: QuotaNode | undefined }) {
  const { t } = useTranslation(['translation', 'deferred']);
  if (!node?.queue_state) return <span className="cv-soft">{t('deferred:quotas.notSaved')}</span>;
  const state = node.queue_state;
  const { used: running = 0, requested = 0 } = node.resources[JOBS] ?? {};
  const why = [node.queue_state_by, node.queue_comment].filter(Boolean).join(': ');
  return (
    <div className={classes['queue']}>
      <div className={classes['queueHead']}>
        <span title={state === 'Open' ? undefined : why}>
          <StateBadge {...LOOKS[state]} label={t(`queueState.${state}`)} />
        </span>
        <QueueMenu node={node} state={state} />
      </div>
      <Link to={`/jobs?queue=${encodeURIComponent(node.path)}`} className={classes['jobs']}>
        <Term word="charged">{t('deferred:quotas.jobs', { running, waiting: requested - running })}</Term>
      </Link>
      {typeof node.recent_gpu_hours === 'number' && (
        <span className="cv-soft" title={node.users.map(({ user, gpu_hours }) => `${user || '—'}: ${gpu_hours.toFixed(1)}`).join('\n')}>
          {t('deferred:quotas.lately', { hours: node.recent_gpu_hours.toFixed(1) })}
        </span>
      )}
      {node.share && <ShareLine share={node.share} />}
      {node.budget && <BudgetLine budget={node.budget} />}
      {node.windows[0] && <WindowLine window={node.windows[0]} />}
    </div>
  );
}

function ShareLine({ share: { borrowed, recent, entitled } }: { share: NonNullable<QuotaNode['share']> }) {
  const { t, i18n } = useTranslation('deferred', { useSuspense: false });
  const format = new Intl.NumberFormat(i18n.language, { style: 'percent', maximumFractionDigits: 1 });
  const now = borrowed === null ? t('quotaShare.noWeight') : t('quotaShare.borrowed', { share: format.format(borrowed) });
  const lately = recent === null ? '' : t('quotaShare.recent', { share: format.format(recent), entitled: format.format(entitled ?? 0) });
  return (
    <span className="cv-soft" title={t('quotaShare.note')}>
      {[now, lately].filter(Boolean).join(' · ')}
    </span>
  );
}

function BudgetLine({ budget }: { budget: NonNullable<QuotaNode['budget']> }) {
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const { t: later } = useTranslation('deferred', { useSuspense: false });
  const time = (at: string) => new Intl.DateTimeFormat(i18n.language, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at));
  const used = { used: budget.used_gpu_hours.toFixed(1), hours: budget.gpu_hours, per: t(`quotas.per.${budget.per as Period}`) };
  const forecast = budget.spent_at
    ? later('budget.spentAt', { time: time(budget.spent_at) })
    : later('budget.ends', { time: time(budget.end), hours: budget.forecast_gpu_hours.toFixed(1) });
  return (
    <span className="cv-soft" style={budget.is_spent ? { color: 'var(--cv-bad)' } : undefined} title={forecast}>
      {t('deferred:quotas.budget', used)}
    </span>
  );
}

function WindowLine({ window }: { window: QuotaNode['windows'][number] }) {
  const { t, i18n } = useTranslation('deferred', { useSuspense: false });
  const words = { t: i18n.t, language: i18n.language };
  const at = new Intl.DateTimeFormat(i18n.language, { dateStyle: 'medium', timeStyle: 'short' }).format(
    new Date(window.is_open ? window.end : window.begin),
  );
  const amounts = (['min', 'max'] as const)
    .filter((bound) => Object.keys(window[bound]).length > 0)
    .map((bound) => `${bound} ${amountWords(window[bound], words)}`);
  return <span className="cv-soft">{t(window.is_open ? 'quotaWindow.open' : 'quotaWindow.next', { time: at, amounts: amounts.join(', ') })}</span>;
}

function QueueMenu({ node, state }: { node: QuotaNode; state: QueueState }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [asked, setAsked] = useState<QueueVerb | null>(null);
  return (
    <>
      <Menu position="bottom-start" width={300}>
        <Menu.Target>
          <ActionIcon size="sm" variant="subtle" color="gray" aria-label={t('deferred:quotas.queueOf', { path: node.path })}>
            <EllipsisVertical size={14} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {VERBS.map(([verb, goal]) => {
            const obstacle = node.may_run ? (goal === state ? t('deferred:quotas.already') : '') : t('deferred:quotas.mayNot');
            const Icon = LOOKS[goal].icon;
            return (
              <Menu.Item
                key={verb}
                aria-disabled={obstacle !== ''}
                data-disabled={obstacle !== '' || undefined}
                className={obstacle ? (classes['off'] ?? '') : ''}
                closeMenuOnClick={obstacle === ''}
                leftSection={<Icon size={15} aria-hidden />}
                onClick={() => obstacle === '' && setAsked(verb)}
              >
                {t(`deferred:quotas.verb.${verb}`)}
                <span className={classes['why']}>{obstacle || t(`deferred:quotas.verbNote.${verb}`)}</span>
              </Menu.Item>
            );
          })}
        </Menu.Dropdown>
      </Menu>
      {asked && <QueueDialog node={node} verb={asked} onClose={() => setAsked(null)} />}
    </>
  );
}
