/** Views of lists that an older console kept in the browser; what cannot be read is no view. They are taken over by the server. */

export interface View {
  name: string;
  search: string;
}

const keyOf = (list: string) => `convoy.views.${list}`;

export function readViews(list: string): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(list)) ?? '[]');
    return Array.isArray(found) ? found.filter(isView) : [];
  } catch {
    return [];
  }
}

export function forgetViews(list: string): void {
  localStorage.removeItem(keyOf(list));
}

function isView(found: unknown): found is View {
  const view = found as Partial<View> | null;
  return typeof view?.name === 'string' && typeof view.search === 'string';
}
