/** Where the console starts. */
import '@fontsource-variable/inter/wght.css';
import '@mantine/core/styles.layer.css';
import 'virtual:mantine-variables.css';
import './ui/tokens.css';
import './ui/base.css';

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { App } from './app/App.tsx';
import { startLanguages } from './app/i18n.ts';

const root = document.getElementById('root');
if (!root) throw new Error('The page has no #root.');

await startLanguages();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
