/** What a time cost and who used it: GPU-hours and cost, allocation, waits, shares between queues, and what they lent each other. */
import { Skeleton } from '@mantine/core';
import { Suspense } from 'react';
import { useTranslation } from 'react-i18next';

import { PageHeader } from '../ui/PageHeader.tsx';
import { AccountingTotals } from './AccountingTotals.tsx';
import { Allocation } from './Allocation.tsx';
import { HoursAndCost } from './HoursAndCost.tsx';
import { LentHours } from './LentHours.tsx';
import { usePeriod } from './period.ts';
import { PeriodSwitch } from './PeriodSwitch.tsx';
import { ShareHistory } from './ShareHistory.tsx';
import { WaitTrends } from './WaitTrends.tsx';
import classes from './Report.module.css';

export default function AccountingPage() {
  const { t } = useTranslation();
  const [chosen, setChosen] = usePeriod('24h');
  return (
    <Suspense fallback={<Skeleton height={320} aria-busy />}>
      <PageHeader title={t('rooms.accounting')}>
        <PeriodSwitch chosen={chosen} onChange={setChosen} />
      </PageHeader>
      <div className={classes['page']}>
        <AccountingTotals chosen={chosen} />
        <HoursAndCost chosen={chosen} />
        <Allocation chosen={chosen} />
        <WaitTrends chosen={chosen} />
        <ShareHistory chosen={chosen} />
        <LentHours chosen={chosen} />
      </div>
    </Suspense>
  );
}
