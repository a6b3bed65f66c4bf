/** Views of lists as they are kept in the browser; what cannot be read is no view. */

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

/** A browser that keeps nothing shows them until the page is left. */
export function writeViews(list: string, views: View[]): void {
  try {
    localStorage.setItem(keyOf(list), JSON.stringify(views));
  } catch {
    return;
  }
}

function isView(found: unknown): found is View {
  const view = found as Partial<View> | null;
  return typeof view?.name === 'string' && typeof view.search === 'string';
}
