/** A sentence of the server as an English reader meets it: a capital first, but in a name; "8 GPUs" for `8 nvidia.com/gpu`. Pure. */

const AMOUNT = /\b(\d+) [a-z0-9.-]+\/(gpu|npu|dcu|xpu|tpu|gaudi|neuron)\b/gi;
/** An address, a host with its port or process, a field of a manifest, or a name with digits or dashes. */
const A_NAME = /^[a-z]\S*[-:./@_\d](?:\S|$|\s)/;

export function polished(text: string): string {
  const plain = text.replace(AMOUNT, (_, count: string, unit: string) => `${count} ${unit.toUpperCase()}${count === '1' ? '' : 's'}`);
  return A_NAME.test(plain) ? plain : plain.charAt(0).toUpperCase() + plain.slice(1);
}

type Refusal = 'invalid' | 'signedOut' | 'forbidden' | 'missing' | 'conflict' | 'busy' | 'away' | 'failed';

const REFUSED = new Map<unknown, Refusal>([
  [400, 'invalid'],
  [401, 'signedOut'],
  [403, 'forbidden'],
  [404, 'missing'],
  [409, 'conflict'],
  [413, 'invalid'],
  [422, 'invalid'],
  [429, 'busy'],
  [503, 'away'],
]);

/** What kind of refusal it is, which the languages have words for. */
export function refusalOf(error: Error): Refusal {
  return REFUSED.get('status' in error ? error.status : 503) ?? 'failed';
}
