import { MantineProvider } from '@mantine/core';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { SettledInput } from './SettledInput.tsx';

const onSettle = vi.fn();

function field(value: string) {
  return (
    <MantineProvider withCssVariables={false}>
      <SettledInput label="Search" value={value} onSettle={onSettle} />
    </MantineProvider>
  );
}

const box = () => screen.getByRole<HTMLInputElement>('textbox', { name: 'Search' });
const type = (value: string) => fireEvent.change(box(), { target: { value } });
const rest = () => {
  act(() => {
    vi.advanceTimersByTime(250);
  });
};

beforeEach(() => {
  vi.useFakeTimers();
  onSettle.mockReset();
});
afterEach(cleanup);

test('hands the text on once, when the typing rests', () => {
  render(field(''));
  for (const text of ['l', 'll', 'lla ']) type(text);
  rest();
  expect(onSettle).toHaveBeenCalledExactlyOnceWith('lla');
});

test('keeps letters typed while its own text was on the way', () => {
  const { rerender } = render(field(''));
  type('lla');
  rest();
  type('llam');
  rerender(field('lla'));
  expect(box().value).toBe('llam');
  rest();
  expect(onSettle).toHaveBeenLastCalledWith('llam');
});

test('a change from outside wins over a text not yet handed on', () => {
  const { rerender } = render(field('old'));
  type('older');
  rerender(field(''));
  rest();
  expect(box().value).toBe('');
  expect(onSettle).not.toHaveBeenCalled();
});
