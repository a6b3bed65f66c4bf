/** Amounts: whole units as the server counts them, quantities as people write them. */

const SCALE = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

function isBytes(resource) {
  return resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
}

/** Whole units (milli-CPU, bytes, devices) as text. */
export function told(resource, units) {
  if (resource === "cpu") return String(units / 1000);
  if (!isBytes(resource)) return String(units);
  for (const unit of ["Ti", "Gi", "Mi", "Ki"]) {
    if (Math.abs(units) >= SCALE[unit]) return `${Number((units / SCALE[unit]).toPrecision(4))}${unit}`;
  }
  return String(units);
}

/** A quantity in whole units, for drawing only; null for what cannot be drawn. The server alone says what is valid. */
export function units(resource, quantity) {
  const found = /^\s*([0-9.]+(?:e[0-9]+)?)\s*(m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?\s*$/.exec(String(quantity ?? ""));
  if (!found) return null;
  const value = Number(found[1]) * (found[2] === "m" ? 1e-3 : found[2] ? SCALE[found[2]] : 1);
  return resource === "cpu" ? value * 1000 : value;
}

/** ``nvidia.com/gpu`` as a column's head. */
export function short(resource) {
  return resource === "kube-queue/max-jobs" ? "jobs" : resource;
}
