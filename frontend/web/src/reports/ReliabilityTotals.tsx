/** The time in four numbers: what was held without progress, the productive share, failures, and the time between them. */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';

import { Link } from '../scope/Link.tsx';
import { heldOf } from './goodput.ts';
import { Tiles } from './Parts.tsx';
import type { Chosen } from './period.ts';
import { goodputQuery } from './queries.ts';
import { useWords } from './useWords.ts';

export function ReliabilityTotals({ chosen }: { chosen: Chosen }) {
  const { t, hours, percent, duration, count } = useWords();
  const { data, error } = useQuery(goodputQuery(chosen, 'fleet'));
  // The panels below say what failed, and try again.
  if (!data) return error ? null : <Skeleton height={86} aria-busy />;
  const [fleet] = data.results;
  const { held, withoutProgress } = fleet ? heldOf(fleet) : { held: 0, withoutProgress: 0 };
  const note = { held: hours(held), waited: hours(fleet?.gpu_hours['waiting'] ?? 0) };
  return (
    <Tiles
      label={t('reports.totals')}
      tiles={[
        { name: t('reports.notProductive'), value: hours(withoutProgress), note: t('reports.notProductiveNote', note) },
        { name: 'ETTR', value: percent(fleet?.ettr ?? null), note: t('reports.ettrNote') },
        { name: t('reports.failures'), value: count(fleet?.failures ?? 0), note: <Link to="/incidents">{t('reports.incidents')}</Link> },
        { name: 'MTBF', value: duration(fleet?.mtbf_hours == null ? null : fleet.mtbf_hours * 3600), note: t('reports.mtbfNote') },
      ]}
    />
  );
}
