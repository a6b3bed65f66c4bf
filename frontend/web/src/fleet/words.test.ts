import i18next from 'i18next';
import { beforeAll, expect, test } from 'vitest';

import type { Reason } from '../api/types.ts';
import en from '../locales/en.json';
import id from '../locales/id.json';
import zh from '../locales/zh-CN.json';
import { polished } from '../ui/serverText.ts';
import { eventWords, reasonWords, verdictWords } from './words.ts';

beforeAll(async () => {
  await i18next.init({
    resources: { en: { translation: en }, 'zh-CN': { translation: zh }, id: { translation: id } },
    lng: 'en',
    fallbackLng: false,
    interpolation: { escapeValue: false },
  });
});

const GPU = 'nvidia.com/gpu';
const JOB = { kind: 'PyTorchJob', namespace: 'vision', cluster: null };
const words = (language: string) => ({ t: i18next.getFixedT(language), language });

const over: Reason = {
  code: 'QuotaExceeded',
  message: 'as the server says it',
  quota: { code: 'QuotaExceeded', path: 'root/a', message: '', resource: GPU, asked: 4, used: 6, kept: 0, max: 8 },
};

test('names the shortage of a quota in GPUs', () => {
  expect(reasonWords(over, JOB, words('en'))).toBe('root/a is short of 2 GPUs: 4 GPUs asked, 6 GPUs of 8 GPUs (max) in use.');
  expect(reasonWords(over, JOB, words('zh-CN'))).toBe('root/a 缺少 2 个 GPU：申请 4 个 GPU，max 8 个 GPU 中已用 6 个 GPU。');
  expect(reasonWords(over, JOB, words('id'))).toContain('kurang 2 GPU');
});

test('names the cluster that is short of least', () => {
  const clusters = [
    { cluster: 'north', code: 'NotEnoughFree', message: '', short: { [GPU]: 8 } },
    { cluster: 'south', code: 'NotEnoughFree', message: '', short: { [GPU]: 1 } },
    { cluster: 'spot', code: 'Cordoned', message: '' },
  ];
  expect(reasonWords({ code: 'NoClusterFits', message: '', clusters }, JOB, words('en'))).toBe(
    'It fits on none of 3 clusters. Nearest is south: short of 1 GPU.',
  );
});

test.each(['en', 'zh-CN', 'id'])('has a sentence of its own for every reason in %s', (language) => {
  for (const code of Object.keys(en.why)) {
    const text = reasonWords({ code, message: 'as the server says it' }, JOB, words(language));
    expect(text, code).not.toBe(code);
    expect(text, code).not.toMatch(/as the server|{{|undefined/);
  }
});

test('says of an empty cluster that it is empty', () => {
  const verdict = { cluster: 'north', code: 'NotEnoughFree', cause: 'Short', short: { [GPU]: 16 }, never: true };
  expect(verdictWords(verdict, words('en'))).toBe('Short of 16 GPUs even when empty');
});

test('leaves an event in the words of the server in English, and translates its code elsewhere', () => {
  const event = { reason: 'Moving', message: 'north is Unknown: 8 nvidia.com/gpu are lost' };
  expect(eventWords(event, words('en'))).toBe('North is Unknown: 8 GPUs are lost');
  expect(eventWords(event, words('zh-CN'))).toBe('正在离开其集群');
  expect(eventWords({ ...event, reason: 'SomethingNew' }, words('id'))).toBe('SomethingNew');
});

test.each([
  ['{north:0,[{master 1} {worker 2}]}', 'Placed on a cluster: north'],
  ['{north-1:3, south.b:2}', 'Placed on a cluster: north-1 and south.b'],
  ['', 'Placed on a cluster'],
])('says of a placement %s where it is, and not how programs read it', (result, text) => {
  const event = { reason: 'ScheduleBindingSucceed', message: `Binding has been scheduled successfully. Result: ${result}` };
  expect(eventWords(event, words('en'))).toBe(text);
});

test('writes amounts of GPUs as people do', () => {
  expect(polished('asks for 1 nvidia.com/gpu of 12 nvidia.com/gpu')).toBe('Asks for 1 GPU of 12 GPUs');
  for (const name of ['vm:4711 waits', 'spec.replicas: must be 1', 'gpu-3 is drained', 'gpu-a is drained', 'north: nothing answers', 'celery@vm is silent']) {
    expect(polished(name)).toBe(name);
  }
  expect(polished('drained by ada.lovelace: fans')).toBe('Drained by ada.lovelace: fans');
  expect(polished('https://10.0.0.1:6443 cannot be reached')).toBe('https://10.0.0.1:6443 cannot be reached');
});
