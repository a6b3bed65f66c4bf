import { describe, expect, test } from 'vitest';

import { placeOf } from './place.ts';
import { amountsText, formatAmount, isAccelerator, percent } from './resources.ts';

const GIB = 1024 ** 3;

describe('accelerators', () => {
  test.each(['nvidia.com/gpu', 'amd.com/gpu', 'huawei.com/Ascend910', 'habana.ai/gaudi', 'nvidia.com/mig-1g.5gb'])('%s is one', (name) => {
    expect(isAccelerator(name)).toBe(true);
  });

  test.each(['cpu', 'memory', 'pods', 'nvidia.com/gpumem', 'rdma/hca'])('%s is none', (name) => {
    expect(isAccelerator(name)).toBe(false);
  });
});

describe('amounts', () => {
  test.each([
    ['cpu', 8_000, '8'],
    ['cpu', 1_500, '1.5'],
    ['memory', 64 * GIB, '64 GiB'],
    ['memory', 512 * 1024 ** 2, '512 MiB'],
    ['memory', 24 * 1024 * GIB, '24 TiB'],
    ['nvidia.com/gpu', 1_024, '1,024'],
  ])('%s %d reads %s', (resource, amount, text) => {
    expect(formatAmount(resource, amount, 'en')).toBe(text);
  });

  test('are said in one line, pods left out', () => {
    const request = { cpu: 8_000, memory: 64 * GIB, 'nvidia.com/gpu': 1, pods: 1 };
    expect(amountsText(request, 'en')).toBe('8 CPU, 64 GiB, 1 GPU');
    expect(amountsText({ 'nvidia.com/gpu': 8 }, 'en')).toBe('8 GPUs');
    expect(amountsText({ 'nvidia.com/gpu': 8 }, 'id')).toBe('8 GPU');
  });

  test('a share of nothing is nothing', () => {
    expect(percent(0, 0, 'en')).toBe('0%');
  });
});

test('says a place once', () => {
  expect(placeOf({ region: 'eu-west', zone: 'eu-west-1a' })).toBe('eu-west-1a');
  expect(placeOf({ region: 'eu-west', zone: 'a' })).toBe('eu-west · a');
  expect(placeOf({ region: '', zone: '' })).toBe('');
});
