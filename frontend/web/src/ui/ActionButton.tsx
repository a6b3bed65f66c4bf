/** A button that says why it cannot be pressed: it stays in reach of keyboard and pointer, so that the reason can be read. */
import { Button, type ButtonProps } from '@mantine/core';
import type { MouseEvent, ReactNode } from 'react';

interface Props extends ButtonProps {
  /** Why not; empty when it can be pressed. */
  obstacle: string;
  type?: 'button' | 'submit';
  /** Its name where the text alone does not say enough. */
  label?: string;
  children: ReactNode;
  onClick?: () => void;
}

export function ActionButton({ obstacle, type = 'button', label, onClick, children, ...rest }: Props) {
  const blocked = obstacle !== '';
  const press = (event: MouseEvent) => {
    if (blocked) event.preventDefault();
    else onClick?.();
  };
  return (
    <Button
      {...rest}
      type={type}
      data-disabled={blocked || undefined}
      aria-disabled={blocked}
      title={obstacle || label}
      aria-label={label}
      aria-description={obstacle || undefined}
      onClick={press}
    >
      {children}
    </Button>
  );
}
