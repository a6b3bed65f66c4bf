/** Mantine in Convoy's colours and measures. The variables made from it are a stylesheet: scripts/mantine-variables.ts. */
import { createTheme, type MantineColorsTuple } from '@mantine/core';

const sea: MantineColorsTuple = [
  '#eaf6fc', '#d3e9f5', '#a5d2ea', '#73b9de', '#4ba4d4', '#3296cc', '#1f83ba', '#12709f', '#0b5f8a', '#074b6e',
];

const dark: MantineColorsTuple = [
  '#dfe6ee', '#b4bfcc', '#96a3b3', '#6d7a8a', '#3a4656', '#28323f', '#1b232e', '#161d26', '#0f141b', '#0a0e13',
];

export const theme = createTheme({
  colors: { sea, dark },
  primaryColor: 'sea',
  primaryShade: { light: 7, dark: 7 },
  black: '#17212c',
  defaultRadius: 6,
  fontFamily: "'Inter Variable', system-ui, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans SC', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', 'Cascadia Code', Menlo, 'DejaVu Sans Mono', monospace",
  components: {
    // What would take the first focus is no item of a menu: the first item takes it.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    // Locking the scroll would write a <style> element, which the content security policy forbids.
    Modal: { defaultProps: { lockScroll: false, centered: true, transitionProps: { duration: 120 } } },
  },
});
