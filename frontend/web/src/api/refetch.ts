/** Lists that a change of one's own has made stale. */
import type { QueryClient } from '@tanstack/react-query';

/**
 * Fetches what is shown under these keys again. A first fetch that is under way is started anew: its answer may be from before
 * the change, and the client would keep it and forget that it is stale.
 */
export async function refetch(client: QueryClient, ...keys: string[]): Promise<void> {
  await Promise.all(
    keys.map(async (key) => {
      const queryKey = [key];
      await client.cancelQueries({ queryKey, predicate: ({ state }) => state.data === undefined });
      await client.invalidateQueries({ queryKey });
    }),
  );
}
