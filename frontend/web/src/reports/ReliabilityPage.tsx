/** What failures, preemptions and waits cost in a time: GPU-hours by class, node and job, time between failures, and productive time. */
import { Skeleton } from '@mantine/core';
import { Suspense } from 'react';
import { useTranslation } from 'react-i18next';

import { PageHeader } from '../ui/PageHeader.tsx';
import { LostHours } from './LostHours.tsx';
import { usePeriod } from './period.ts';
import { PeriodSwitch } from './PeriodSwitch.tsx';
import { ReliabilityTotals } from './ReliabilityTotals.tsx';
import classes from './Report.module.css';

export default function ReliabilityPage() {
  const { t } = useTranslation();
  const [chosen, setChosen] = usePeriod('7d');
  return (
    <Suspense fallback={<Skeleton height={320} aria-busy />}>
      <PageHeader title={t('rooms.reliability')}>
        <PeriodSwitch chosen={chosen} onChange={setChosen} />
      </PageHeader>
      <div className={classes['page']}>
        <ReliabilityTotals chosen={chosen} />
        <LostHours chosen={chosen} choices={['class']} title="byClass" />
        <LostHours chosen={chosen} choices={['node', 'cluster', 'model']} title="byNode" />
        <LostHours chosen={chosen} choices={['job', 'team', 'queue']} title="byJob" />
      </div>
    </Suspense>
  );
}
