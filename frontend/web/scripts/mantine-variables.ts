/**
 * The theme's CSS variables as a stylesheet made at build time. Mantine would otherwise write them into a <style>
 * element at run time, which the content security policy (style-src 'self') forbids.
 */
import { convertCssVariables, defaultCssVariablesResolver, DEFAULT_THEME, mergeMantineTheme } from '@mantine/core';
import type { Plugin } from 'vite';

import { theme } from '../src/app/theme.ts';

const NAME = 'virtual:mantine-variables.css';

export function mantineVariables(): Plugin {
  return {
    name: 'mantine-variables',
    resolveId: (id) => (id === NAME ? `\0${NAME}` : null),
    load: (id) => (id === `\0${NAME}` ? stylesheet() : null),
  };
}

function stylesheet(): string {
  const whole = mergeMantineTheme(DEFAULT_THEME, theme);
  return convertCssVariables(defaultCssVariablesResolver(whole), ':root');
}
