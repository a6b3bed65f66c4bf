/** What the server says of the draft that is shown, once it has not changed for a moment; never beside a newer one. */
import { useQuery } from '@tanstack/react-query';

import type { QuotaChange, QuotaPreview } from '../api/types.ts';
import { previewQuery } from './queries.ts';
import { useSettled } from './useSettled.ts';

const LOOK_AFTER_MS = 350;

interface Preview {
  preview: QuotaPreview | undefined;
  /** The answer for this draft is under way. */
  looking: boolean;
  failed: Error | null;
}

export function usePreview(generation: number, changes: QuotaChange[]): Preview {
  const settled = useSettled(changes, LOOK_AFTER_MS);
  const { data, isFetching, isPlaceholderData, error } = useQuery(previewQuery(generation, settled));
  const isOfThis = settled === changes && changes.length > 0;
  return {
    preview: isOfThis && !isPlaceholderData ? data : undefined,
    looking: isFetching || isPlaceholderData || settled !== changes,
    failed: isOfThis ? error : null,
  };
}
