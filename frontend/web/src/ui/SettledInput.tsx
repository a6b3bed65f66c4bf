/**
 * A text field whose value lives elsewhere (in the address): it hands a text on once the typing rests, follows changes from
 * outside (back, clear, a shared link), and never takes away letters typed while its own text is still on the way.
 */
import { TextInput } from '@mantine/core';
import { type ReactNode, type RefObject, useEffect, useEffectEvent, useState } from 'react';

const REST_MS = 250;

interface Props {
  label: string;
  value: string;
  wide?: boolean;
  icon?: ReactNode;
  inputRef?: RefObject<HTMLInputElement | null> | undefined;
  onSettle: (text: string) => void;
}

export function SettledInput({ label, value, wide = false, icon, inputRef, onSettle }: Props) {
  const [text, setText] = useState({ typed: value, seen: value, sent: value });
  if (value !== text.seen) setText({ ...text, typed: value === text.sent ? text.typed : value, seen: value });
  const send = useEffectEvent((typed: string) => {
    setText((current) => ({ ...current, sent: typed }));
    onSettle(typed);
  });
  useEffect(() => {
    const typed = text.typed.trim();
    if (typed === value) return undefined;
    const timer = setTimeout(() => send(typed), REST_MS);
    return () => clearTimeout(timer);
  }, [text.typed, value]);
  return (
    <TextInput
      size="xs"
      ref={inputRef}
      wrapperProps={{ 'data-wide': wide }}
      aria-label={label}
      placeholder={label}
      leftSection={icon}
      value={text.typed}
      onChange={({ currentTarget: { value: typed } }) => setText((current) => ({ ...current, typed }))}
    />
  );
}
