/** Amounts of a quota: whole units as the server counts them, quantities as people write them in a manifest. Pure. */

const SCALE: Record<string, number> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
};
const BINARY = ['Ti', 'Gi', 'Mi', 'Ki'] as const;
const QUANTITY = /^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$/;

export const JOBS = 'kube-queue/max-jobs';

function isBytes(resource: string): boolean {
  return resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-');
}

/** A quantity in whole units (milli-CPU, bytes, devices); null for what is none. The server has the last word. */
export function unitsOf(resource: string, quantity: string): number | null {
  const found = QUANTITY.exec(quantity.trim());
  if (!found) return null;
  const suffix = found[2];
  const scale = suffix === undefined ? 1 : suffix === 'm' ? 0.001 : (SCALE[suffix] ?? 1);
  const units = Number(found[1]) * scale * (resource === 'cpu' ? 1000 : 1);
  return Number.isSafeInteger(Math.round(units)) && Math.abs(units - Math.round(units)) < 1e-6 ? Math.round(units) : null;
}

/** The quantity that says exactly these units, as short as can be. */
export function quantityOf(resource: string, units: number): string {
  if (resource === 'cpu') return units % 1000 === 0 ? String(units / 1000) : `${units}m`;
  if (!isBytes(resource)) return String(units);
  const suffix = BINARY.find((each) => units > 0 && units % (SCALE[each] ?? 1) === 0);
  return suffix ? `${units / (SCALE[suffix] ?? 1)}${suffix}` : String(units);
}

/** What an arrow key or a dragged handle goes by. */
export function stepOf(resource: string): number {
  if (resource === 'cpu') return 1000;
  return isBytes(resource) ? 2 ** 30 : 1;
}

/** Devices first, counts last: the order in which people ask. */
export function inOrder(resources: Iterable<string>): string[] {
  const rank = (name: string) => (name === JOBS || name === 'pods' ? 2 : name.includes('/') ? 0 : 1);
  return [...new Set(resources)].sort((left, right) => rank(left) - rank(right) || left.localeCompare(right));
}
