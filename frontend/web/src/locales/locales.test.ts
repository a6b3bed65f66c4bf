import { describe, expect, test } from 'vitest';

import { preferred } from '../app/i18n.ts';
import deferredEn from './deferred/en.json';
import deferredId from './deferred/id.json';
import deferredZh from './deferred/zh-CN.json';
import en from './en.json';
import id from './id.json';
import zh from './zh-CN.json';

type Texts = { [key: string]: string | Texts };

function flat(texts: Texts, prefix = ''): Map<string, string> {
  const entries = Object.entries(texts).flatMap(([key, value]) =>
    typeof value === 'string' ? [[prefix + key, value] as const] : [...flat(value, `${prefix}${key}.`)],
  );
  return new Map(entries);
}

/** Chinese and Indonesian have one plural form. */
const inEnglish = (texts: Texts) => new Map([...flat(texts)].filter(([key]) => !key.endsWith('_one')));
const holes = (text: string) => [...text.matchAll(/{{(\w+)}}/g)].map(([, name]) => name).sort();

describe.each([
  ['zh-CN', flat(zh), inEnglish(en)],
  ['id', flat(id), inEnglish(en)],
  ['zh-CN of deferred texts', flat(deferredZh), inEnglish(deferredEn)],
  ['id of deferred texts', flat(deferredId), inEnglish(deferredEn)],
])('%s', (_, texts, english) => {
  test('has every text, and no other', () => {
    expect([...texts.keys()].sort()).toEqual([...english.keys()].sort());
  });

  test('fills the same holes', () => {
    for (const [key, text] of texts) expect(holes(text), key).toEqual(holes(english.get(key)!));
  });
});

/** One word for one thing: what the other texts call by another word. Names of kinds and commands stay as they are. */
test.each([
  ['zh-CN', [zh, deferredZh], /任务/],
  ['id', [id, deferredId], /(?<![\w{./`-])(jobs?|clusters?|queues?)(?![\w}/])/i],
])('%s keeps to its glossary', (_, parts, former) => {
  for (const texts of parts) for (const [key, text] of flat(texts)) expect(text, key).not.toMatch(former);
});

test.each([
  [['fr', 'zh-TW'], 'zh-CN'],
  [['id-ID', 'en'], 'id'],
  [['de'], 'en'],
])('of %j the console speaks %s', (wanted, language) => {
  expect(preferred(wanted)).toBe(language);
});
