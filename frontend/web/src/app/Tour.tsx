/** Six steps through the product on the demo fleet, beside the pages they are about. Fetched when it is opened. */
import { ActionIcon, Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useLocation } from 'react-router';

import type { Cluster } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import { useGo } from '../scope/useScope.ts';
import { tour, TOUR_STEPS } from './tour.ts';
import { TourBreak } from './TourBreak.tsx';
import { TourReclaim } from './TourReclaim.tsx';
import classes from './Tour.module.css';

export function Tour({ step }: { step: number }) {
  const { t } = useTranslation('deferred');
  const go = useGo();
  const here = useLocation().pathname;
  const heading = useRef<HTMLHeadingElement>(null);
  const breakable = useBreakable();
  const name = TOUR_STEPS[step] ?? 'fleet';
  const last = step === TOUR_STEPS.length - 1;
  const places = ['/fleet', '/submit', '/jobs?state=Queued', '/quotas', '/fleet', '/fleet'];
  const place = places[step] ?? '/fleet';
  const show = (next: number) => {
    tour.goTo(next);
    go(places[next] ?? '/fleet');
  };
  // The words of a step are read out, and the keyboard goes on from there.
  useEffect(() => heading.current?.focus(), [step]);
  const onKeyDown = ({ key }: KeyboardEvent) => key === 'Escape' && tour.putAway();
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Escape works wherever in it the focus is
    <section className={classes['tour']} aria-labelledby="tour-title" onKeyDown={onKeyDown}>
      <p className="cv-soft cv-numbers">{t('tour.progress', { step: step + 1, of: TOUR_STEPS.length })}</p>
      <h2 id="tour-title" ref={heading} tabIndex={-1}>
        {t(`tour.${name}.title`)}
      </h2>
      <p>{t(`tour.${name}.body`)}</p>
      <p className={classes['try']}>{t(`tour.${name}.try`)}</p>
      {name === 'reclaim' && <TourReclaim />}
      {last && breakable && <TourBreak cluster={breakable} />}
      <Group justify="space-between" mt="sm" gap="xs">
        {here === place.split('?')[0] ? (
          <span />
        ) : (
          <Button size="compact-sm" variant="subtle" onClick={() => go(place)}>
            {t('tour.show')}
          </Button>
        )}
        <Group gap="xs">
          {step > 0 && (
            <Button size="compact-sm" variant="default" onClick={() => show(step - 1)}>
              {t('tour.back')}
            </Button>
          )}
          <Button size="compact-sm" onClick={() => (last ? tour.finish() : show(step + 1))}>
            {t(last ? 'tour.done' : 'tour.next')}
          </Button>
        </Group>
      </Group>
      <ActionIcon className={classes['close'] ?? ''} variant="subtle" color="gray" size={26} aria-label={t('tour.putAway')} title={t('tour.putAway')} onClick={tour.putAway}>
        <X size={15} />
      </ActionIcon>
    </section>
  );
}

/** The smallest that runs something: its jobs find room elsewhere soonest. One that is broken already stays the one. */
function useBreakable(): Cluster | undefined {
  const { data } = useQuery(clustersQuery);
  const size = ({ nodes }: Cluster) => nodes.total;
  const gpus = (cluster: Cluster) => cluster.gpus.allocatable;
  const running = (data?.results ?? []).filter(({ jobs }) => jobs.running > 0);
  return [...(running.length > 0 ? running : (data?.results ?? []))].sort((a, b) => gpus(a) - gpus(b) || size(a) - size(b))[0];
}
