/** The fleet's GPUs over time as parts of a whole, and when a cluster was lost or came back. Pure. */
import type { Series } from '../api/types.ts';
import { combined, valuesOf } from '../series/answer.ts';
import type { Value } from '../ui/chart/data.ts';

export interface Part {
  id: 'used' | 'held' | 'free' | 'away';
  look: 'used' | 'held' | 'free' | 'away';
  values: Value[];
}

/** Together they are all GPUs there are. What pods ask for is used; what is neither that nor free is held. */
export function gpuParts(answer: Series, name: string): Part[] {
  const of = (metric: string) => valuesOf(answer, metric, name);
  const [used, free] = [of('requested'), of('free')];
  const held = combined((all = 0, taken = 0, rest = 0) => Math.max(0, all - taken - rest), of('capacity'), used, free);
  return [
    { id: 'used', look: 'used', values: used },
    { id: 'held', look: 'held', values: held },
    { id: 'free', look: 'free', values: free },
    { id: 'away', look: 'away', values: of('unreachable') },
  ];
}

export interface ReachChange {
  at: number;
  name: string;
  lost: boolean;
}

/** In order. A cluster is lost at the first step in which some of it is out of reach, and back at the first without. */
export function reachChanges({ series, start, step }: Series): ReachChange[] {
  const each = series.flatMap(({ name, values }) => {
    let before: Value = null;
    return values.flatMap((value, i) => {
      if (value === null) return [];
      const [was, is] = [before !== null && before > 0, value > 0];
      const known = before !== null;
      before = value;
      return known && was !== is ? [{ at: start + i * step, name, lost: is }] : [];
    });
  });
  return each.sort((left, right) => left.at - right.at);
}
