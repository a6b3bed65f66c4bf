/** Amounts of resources in words. How many devices a node or cluster has is counted by the server. Pure. */
import type { Amounts, Capacity } from '../api/types.ts';

const ACCELERATOR = /\/(gpu|npu|dcu|xpu|tpu|gaudi|neuron|neuroncore|ascend\w*|mig-[\w.]+)$/i;
const GIB = 1024 ** 3;

export function isAccelerator(resource: string): boolean {
  return ACCELERATOR.test(resource);
}

export const NOTHING: Capacity = { allocatable: 0, requested: 0, held: 0, free: 0 };

export function addCapacity(left: Capacity, right: Capacity): Capacity {
  return {
    allocatable: left.allocatable + right.allocatable,
    requested: left.requested + right.requested,
    held: left.held + right.held,
    free: left.free + right.free,
  };
}

/** A count of devices, cores for milli-cores, GiB or TiB for bytes. */
export function formatAmount(resource: string, amount: number, language: string): string {
  if (resource === 'cpu') return decimal(amount / 1000, language);
  if (resource === 'memory' || resource.endsWith('storage')) return formatBytes(amount, language);
  return decimal(amount, language);
}

export function formatBytes(bytes: number, language: string): string {
  const gib = bytes / GIB;
  if (gib >= 1024) return `${decimal(gib / 1024, language)} TiB`;
  if (gib >= 1) return `${decimal(gib, language)} GiB`;
  return `${decimal(bytes / 1024 ** 2, language)} MiB`;
}

/** "nvidia.com/gpu" is "GPU" where the maker does not matter. */
export function shortResource(resource: string): string {
  if (isAccelerator(resource)) return resource.slice(resource.indexOf('/') + 1).toUpperCase();
  return resource === 'cpu' ? 'CPU' : resource;
}

/** "8 CPU, 64 GiB, 8 GPUs": what one pod asks for, or what is short. Pods themselves are no amount worth a word. */
export function amountsText(amounts: Amounts, language: string): string {
  return Object.entries(amounts)
    .filter(([resource]) => resource !== 'pods')
    .map(([resource, amount]) => {
      const value = formatAmount(resource, amount, language);
      const isPlural = language === 'en' && isAccelerator(resource) && amount !== 1;
      return resource === 'memory' ? value : `${value} ${shortResource(resource)}${isPlural ? 's' : ''}`;
    })
    .join(', ');
}

export function percent(part: number, whole: number, language: string): string {
  const share = whole > 0 ? part / whole : 0;
  return new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 0 }).format(share);
}

function decimal(value: number, language: string): string {
  const digits = Math.abs(value) < 100 ? 1 : 0;
  return new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value);
}
