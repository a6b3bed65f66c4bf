/** What a draft would do to the jobs of now, as the engine itself settles it. */
import { CircleAlert, Hourglass, Play, Undo2, type LucideIcon } from 'lucide-react';
import { useTranslation } from 'react-i18next';

import type { QuotaEffect, QuotaPreview } from '../api/types.ts';
import { ServerText } from '../ui/ServerText.tsx';
import classes from './DraftPanel.module.css';

const PARTS = [
  ['starts', Play],
  ['waits', Hourglass],
  ['reclaimed', Undo2],
] as const satisfies [keyof QuotaEffect, LucideIcon][];

const SHOWN = 8;

export function EffectList({ preview }: { preview: QuotaPreview }) {
  const { t, i18n } = useTranslation(['translation', 'deferred']);
  const { effect, faults, refusals, warnings } = preview;
  const against = [...refusals, ...faults.map(({ path, field, detail }) => (path === '' ? `${field}: ${detail}` : detail.includes(path) ? detail : `${path}: ${detail}`))];
  const quiet = PARTS.every(([part]) => effect[part].length === 0) && effect.unbound.length + effect.excess.length === 0;
  return (
    <>
      {against.length > 0 && (
        <ul className={classes['list']}>
          {against.map((text) => (
            <li key={text} data-tone="bad">
              <CircleAlert size={14} aria-hidden /> {i18n.language !== 'en' && t('refused.invalid')} <ServerText text={text} />
            </li>
          ))}
        </ul>
      )}
      {faults.length === 0 && quiet && <p className="cv-soft">{t('deferred:quotas.noEffect')}</p>}
      {PARTS.filter(([part]) => effect[part].length > 0).map(([part, Icon]) => (
        <section key={part} aria-label={t(`deferred:quotas.part.${part}`)} data-part={part} className={classes['part']}>
          <h4>
            <Icon size={14} aria-hidden /> {t(`deferred:quotas.part.${part}`)} <b>{effect[part].length}</b>
          </h4>
          <Lines lines={effect[part].map(({ job, leaf, message }) => [job || t('deferred:help.hidden', { count: 1 }), message || leaf])} />
        </section>
      ))}
      <Lines lines={effect.unbound.map((job) => [`${job || t('deferred:help.hidden', { count: 1 })} ${t('deferred:quotas.unbound')}`, ''])} />
      <Lines lines={effect.excess.map(({ path, policy, message }) => [`${path}: ${t(`deferred:quotas.follows.${policy}`)}`, message])} />
      <Lines lines={warnings.map((text) => ['', text])} />
    </>
  );
}

function Lines({ lines }: { lines: [string, string][] }) {
  const { t } = useTranslation(['translation', 'deferred']);
  if (lines.length === 0) return null;
  return (
    <ul className={classes['list']}>
      {lines.slice(0, SHOWN).map(([subject, text], index) => (
        <li key={`${index} ${subject} ${text}`}>
          {subject && <b>{subject}</b>} <span className="cv-soft"><ServerText text={text} /></span>
        </li>
      ))}
      {lines.length > SHOWN && <li className="cv-soft">{t('deferred:quotas.more', { count: lines.length - SHOWN })}</li>}
    </ul>
  );
}
