/** Fails when the shell (what every page loads before its own chunk) or any one route grows over its budget. */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const SHELL_KB = 180;
const ROUTE_KB = 500;
const DIST = new URL('../dist/', import.meta.url);

const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', DIST), 'utf8'));

function reachable(key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) reachable(next, seen);
  return seen;
}

function kilobytes(keys) {
  const files = [...new Set([...keys].map((key) => manifest[key].file))].filter((file) => file.endsWith('.js'));
  return files.reduce((sum, file) => sum + gzipSync(readFileSync(new URL(file, DIST))).length, 0) / 1000;
}

const entry = 'index.html';
const shell = reachable(entry);
const rows = [['shell', kilobytes(shell), SHELL_KB]];
for (const [key, chunk] of Object.entries(manifest)) {
  if (chunk.isEntry && key !== entry) rows.push([key, kilobytes(reachable(key)), ROUTE_KB]);
  if (chunk.isDynamicEntry) rows.push([key, kilobytes(new Set([...shell, ...reachable(key)])), ROUTE_KB]);
}

for (const [name, size, budget] of rows) console.log(`${size.toFixed(1).padStart(7)} kB of ${budget} kB  ${name}`);
if (rows.some(([, size, budget]) => size > budget)) {
  console.error('Over budget.');
  process.exit(1);
}
