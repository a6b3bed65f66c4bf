/** What if: changes are supposed, the scheduler plans with and without them, and the address carries them to whoever gets the link. */
import { Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CircleCheck, Link as LinkIcon, Split } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useLocation, useNavigate } from 'react-router';

import { api } from '../api/client.ts';
import type { WhatIf } from '../api/types.ts';
import { OutcomeTable } from '../fleet/OutcomeTable.tsx';
import { intoClipboard } from '../ui/clipboard.ts';
import { curl } from '../ui/commands.ts';
import { CopyAs } from '../ui/CopyAs.tsx';
import { Empty, Failed } from '../ui/Message.tsx';
import { PageHeader } from '../ui/PageHeader.tsx';
import { Panel } from '../ui/Panel.tsx';
import { bodyOf, fromHash, NOTHING, obstacleOf, type Supposed, toHash } from './suppose.ts';
import { SupposeForm } from './SupposeForm.tsx';
import classes from './WhatIfPage.module.css';

export default function WhatIfPage() {
  const { t } = useTranslation('deferred');
  const { hash, search } = useLocation();
  const asked = fromHash(hash);
  const [supposed, setSupposed] = useState(asked);
  const [former, setFormer] = useState(hash);
  if (hash !== former) {
    // Another link was opened, or a step back was taken.
    setFormer(hash);
    setSupposed(asked);
  }
  const navigate = useNavigate();
  const show = (next: Supposed) => void navigate({ pathname: '/whatif', search, hash: toHash(next) });
  const isAsked = obstacleOf(asked) === null;
  return (
    <>
      <PageHeader title={t('whatif.title')} note={t('whatif.note')}>
        {isAsked && <CopyLink />}
        {isAsked && <CopyAs commands={{ curl: curl('whatif/', 'POST', bodyOf(asked)) }} />}
      </PageHeader>
      <div className={classes['columns']}>
        <SupposeForm
          supposed={supposed}
          onChange={(part) => setSupposed({ ...supposed, ...part })}
          onCalculate={() => show(supposed)}
          onClear={() => (isAsked ? show(NOTHING) : setSupposed(NOTHING))}
        />
        <Panel title={t('whatif.result')} flush={isAsked}>
          <div aria-live="polite">
            {!isAsked && (
              <Empty title={t('whatif.startTitle')} icon={Split}>
                {t('whatif.startBody')}
              </Empty>
            )}
            {isAsked && toHash(supposed) !== toHash(asked) && <p className={classes['note']}>{t('whatif.stale')}</p>}
            {isAsked && toHash(supposed) === toHash(asked) && <Result asked={asked} />}
          </div>
        </Panel>
      </div>
    </>
  );
}

function Result({ asked }: { asked: Supposed }) {
  const { t } = useTranslation('deferred');
  const { data, error, refetch } = useQuery({
    queryKey: ['whatif', 'page', toHash(asked)],
    queryFn: () => api.post<WhatIf>('whatif/', bodyOf(asked)),
    staleTime: 0,
    retry: false,
  });
  if (!data && error) return <Failed error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={140} m={16} width="auto" aria-busy />;
  const counts = { starts: [data.starts_before, data.starts_after], waits: [data.waits_before, data.waits_after] } as const;
  return (
    <>
      <dl className={classes['counts']}>
        {(['starts', 'waits'] as const).map((name) => (
          <div key={name}>
            <dt>{t(`whatif.${name}`)}</dt>
            <dd>{t('whatif.counts', { before: counts[name][0], after: counts[name][1] })}</dd>
          </div>
        ))}
      </dl>
      {data.differences.length === 0 ? (
        <Empty title={t('whatif.same')} icon={CircleCheck}>
          {t('whatif.sameBody')}
        </Empty>
      ) : (
        <OutcomeTable caption={t('whatif.jobs')} differences={data.differences} />
      )}
    </>
  );
}

function CopyLink() {
  const { t } = useTranslation('deferred');
  const [copied, setCopied] = useState(false);
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<LinkIcon size={14} aria-hidden />}
      onClick={() => void intoClipboard(window.location.href).then(setCopied)}
      onBlur={() => setCopied(false)}
    >
      {t(copied ? 'whatif.copied' : 'whatif.copyLink')}
    </Button>
  );
}
