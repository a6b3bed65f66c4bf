/** What a file begins with: the example that was chosen; else the job of the address. */
import { useEffect, useEffectEvent } from 'react';

import { loadExample, loadJob } from './examples.ts';

/** It comes late on a slow line, and takes the place of nothing that was written meanwhile. */
export function useBeginning(example: string | null, job: string | null, asClone: boolean, text: string, show: (text: string) => void): void {
  const now = useEffectEvent(() => text);
  const begin = useEffectEvent((before: string, loaded: string) => {
    if (text === before) show(loaded);
  });
  useEffect(() => {
    const loading = example !== null ? loadExample(example) : job !== null ? loadJob(job, asClone) : null;
    const before = now();
    let wanted = true;
    void loading?.then((loaded) => wanted && begin(before, loaded));
    return () => {
      wanted = false;
    };
  }, [example, job, asClone]);
}
