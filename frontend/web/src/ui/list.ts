/** Lists that live in the address: their texts to search by, their page. */
import { useSearchParams } from 'react-router';

export const PAGE_SIZE = 50;

export interface ListState {
  search: string;
  page: number;
  get: (name: string) => string;
  set: (part: Record<string, string>) => void;
}

export function useListState(): ListState {
  const [params, setParams] = useSearchParams();
  const page = Number(params.get('page') ?? 1);
  return {
    search: params.get('search') ?? '',
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
    get: (name) => params.get(name) ?? '',
    set: (part) =>
      setParams(
        (before) => {
          const entries = Object.entries({ ...Object.fromEntries(before), page: '', ...part });
          return new URLSearchParams(entries.filter(([, value]) => value !== '' && value !== '1'));
        },
        { replace: true },
      ),
  };
}
