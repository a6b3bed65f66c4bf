/** The button of a remedy: it asks first and shows what it would do; to a reader who may not, it says who may. */
import { ArrowRight } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';

import type { JobDetail } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import { useGo } from '../scope/useScope.ts';
import { ActionButton } from '../ui/ActionButton.tsx';
import { actionWords, draftOf, pageOf, wayOf } from './help.ts';
import { RemedyDialog } from './RemedyDialog.tsx';
import { SuspendJobs } from './SuspendJobs.tsx';
import type { Step } from './types.ts';

const ApplyDialog = lazy(async () => ({ default: (await import('./ApplyDialog.tsx')).ApplyDialog }));
const NamespaceDialog = lazy(async () => ({ default: (await import('./NamespaceDialog.tsx')).NamespaceDialog }));

interface Props {
  step: Step;
  job: JobDetail;
  /** The limits that one draft raises; none: another step of the same advice has them. */
  limits: Step[];
  /** Why this reader may not. */
  obstacle: string;
}

export function RemedyAct({ step, job, limits, obstacle }: Props) {
  const way = wayOf(step, useIsSimulated(step.cluster));
  if (way === 'time' || (way === 'draft' && limits.length === 0)) return null;
  if (way === 'suspend') return <SuspendJobs step={step} obstacle={obstacle} />;
  if (way === 'draft') return <Leads to={draftOf(limits)} step={step} obstacle={obstacle} />;
  if (way === 'page') return <Leads to={pageOf(step, job)} step={step} obstacle={obstacle} />;
  return <Asks step={step} job={job} way={way} obstacle={obstacle} />;
}

function useIsSimulated(name: string): boolean {
  const { data } = useQuery(clustersQuery);
  return data?.results.some((cluster) => cluster.name === name && cluster.simulated) ?? false;
}

function Leads({ to, step, obstacle }: { to: string; step: Step; obstacle: string }) {
  const { t } = useTranslation();
  const go = useGo();
  return (
    <ActionButton size="compact-xs" variant="default" rightSection={<ArrowRight size={12} aria-hidden />} obstacle={obstacle} onClick={() => go(to)}>
      {actionWords(step, 'page', t)}
    </ActionButton>
  );
}

function Asks({ step, job, way, obstacle }: Omit<Props, 'limits'> & { way: 'apply' | 'namespace' | 'do' }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState(false);
  const close = () => setAsked(false);
  return (
    <>
      <ActionButton size="compact-xs" variant="default" obstacle={obstacle} onClick={() => setAsked(true)}>
        {actionWords(step, way, t)}
      </ActionButton>
      <Suspense>
        {asked && way === 'do' && <RemedyDialog step={step} job={job} onClose={close} />}
        {asked && way === 'apply' && <ApplyDialog step={step} job={job} onClose={close} />}
        {asked && way === 'namespace' && <NamespaceDialog namespace={job.namespace} onClose={close} />}
      </Suspense>
    </>
  );
}
