/** The jobs that make room by ending, as links; and, for a reader who may, a button that suspends as many as it takes. */
import { Pause } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';

import { Link } from '../scope/Link.tsx';
import { ActionButton } from '../ui/ActionButton.tsx';
import type { Step } from './types.ts';

const OrderDialog = lazy(async () => ({ default: (await import('./OrderDialog.tsx')).OrderDialog }));

export function SuspendJobs({ step, obstacle }: { step: Step; obstacle: string }) {
  const { t } = useTranslation(['translation', 'deferred']);
  const [asked, setAsked] = useState(false);
  const seen = step.held_by.filter(({ id }) => id);
  const own = seen.filter(({ allowed }) => allowed);
  const chosen = (own.length >= step.count ? own : seen).slice(0, step.count);
  return (
    <>
      {seen.map(({ id, name }) => (
        <Link key={id} to={`/jobs/${id}`} aria-label={t('deferred:help.open', { name })}>
          {name.split('/')[1]}
        </Link>
      ))}
      {step.count > 0 && chosen.length === step.count && (
        <ActionButton
          size="compact-xs"
          variant="default"
          leftSection={<Pause size={12} aria-hidden />}
          obstacle={obstacle}
          onClick={() => setAsked(true)}
        >
          {t('deferred:help.suspend', { count: step.count, name: chosen[0]?.name })}
        </ActionButton>
      )}
      {asked && (
        <Suspense>
          <OrderDialog action="suspend" ids={chosen.map(({ id }) => id)} onClose={() => setAsked(false)} />
        </Suspense>
      )}
    </>
  );
}
