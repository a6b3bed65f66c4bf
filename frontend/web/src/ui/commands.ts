/** Words for a shell: kubectl, the command line and curl, with what they are given quoted. Pure, but for where the console is. */

export interface Commands {
  kubectl?: string | undefined;
  cli?: string | undefined;
  curl?: string | undefined;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** As one word of a shell, whatever is in it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function kubectl(...words: string[]): string {
  return ['kubectl', '--kubeconfig', '.convoy/kubeconfig', ...words.map(quoted)].join(' ');
}

/** A change of one object: only the fields named, lists as a whole. */
export function kubectlPatch(target: string[], patch: unknown): string {
  return kubectl('patch', ...target, '--type', 'merge', '-p', JSON.stringify(patch));
}

export function convoy(...words: string[]): string {
  return ['convoy', ...words.map(quoted)].join(' ');
}

/** A call of the REST API by curl, with the token from the environment. */
export function curl(path: string, method: Method = 'GET', body?: unknown): string {
  const parts = ['curl', '-sS', '-H', '"Authorization: Bearer $CONVOY_TOKEN"'];
  if (method !== 'GET') parts.push('-X', method);
  if (body !== undefined) parts.push('-H', "'Content-Type: application/json'", '-d', quoted(JSON.stringify(body)));
  return [...parts, quoted(`${window.location.origin}/api/v1/${path}`)].join(' ');
}

/** A file of manifests, sent as it is. */
export function curlFile(path: string, file: string): string {
  return curl(path, 'POST').replace(' -X POST', ` -X POST -H 'Content-Type: application/yaml' --data-binary @${file}`);
}

/** A list's path with those of its parameters that say something. */
export function listOf(path: string, query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return given.length > 0 ? `${path}?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}` : path;
}

/** The namespace flags of kubectl and the command line. */
export function within(namespace: string): string[] {
  return namespace ? ['-n', namespace] : ['-A'];
}
