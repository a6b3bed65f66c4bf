/** Five steps through the product on the demo fleet, beside the pages they are about. Fetched when it is opened. */
import { ActionIcon, Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useLocation } from 'react-router';

import type { Cluster } from '../api/types.ts';
import { clustersQuery } from '../fleet/queries.ts';
import { useGo } from '../scope/useScope.ts';
import { CopyText } from '../ui/CopyAs.tsx';
import { quoted } from '../ui/commands.ts';
import { tour, TOUR_STEPS } from './tour.ts';
import classes from './Tour.module.css';

export function Tour({ step }: { step: number }) {
  const { t } = useTranslation();
  const go = useGo();
  const here = useLocation().pathname;
  const heading = useRef<HTMLHeadingElement>(null);
  const busiest = useBusiest();
  const name = TOUR_STEPS[step] ?? 'fleet';
  const last = step === TOUR_STEPS.length - 1;
  const places = [
    '/fleet',
    '/submit',
    '/jobs?state=Queued',
    '/quotas',
    busiest ? `/fleet/${encodeURIComponent(busiest)}` : '/fleet',
  ];
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
      {last && busiest && <Kill cluster={busiest} />}
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

/** The machine of the simulated cluster goes silent; nothing in the console can do that. */
function Kill({ cluster }: { cluster: string }) {
  const command = `.venv/bin/python -m fleet.simulator.fault --home .convoy/simulator ${quoted(cluster)} away`;
  return (
    <div className={classes['command']}>
      <code className="cv-mono">{command}</code>
      <CopyText text={command} />
    </div>
  );
}

/** Where most jobs run: there is most to see when it goes. */
function useBusiest(): string | undefined {
  const { data } = useQuery(clustersQuery);
  const runs = ({ jobs }: Cluster) => jobs.running + jobs.placed;
  return [...(data?.results ?? [])].sort((a, b) => runs(b) - runs(a))[0]?.name;
}
