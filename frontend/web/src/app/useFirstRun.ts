/** Opens the tour by itself, once: for a user who never saw it, on the demo fleet that `up` starts. */
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';

import { clustersQuery } from '../fleet/queries.ts';
import { tour, useTour } from './tour.ts';

/** The clusters of deploy/demo/fleet.yaml. */
const DEMO = ['north', 'south', 'spot'];

export function useFirstRun(): void {
  const isNew = useTour().status === 'new';
  const { data } = useQuery({ ...clustersQuery, enabled: isNew });
  const names = data?.results.map(({ name }) => name) ?? [];
  const demo = isNew && DEMO.every((name) => names.includes(name));
  useEffect(() => {
    if (demo) tour.open();
  }, [demo]);
}
