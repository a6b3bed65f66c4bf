/** Where the quota editor starts as a page of the Django admin: the console's own page, without its frame. */
import '@fontsource-variable/inter/wght.css';
import '@mantine/core/styles.layer.css';
import 'virtual:mantine-variables.css';
import './ui/tokens.css';
import './ui/embedded.css';

import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, Suspense, useEffect, useSyncExternalStore } from 'react';
import { createRoot } from 'react-dom/client';
import { createBrowserRouter, RouterProvider } from 'react-router';

import { door } from './api/client.ts';
import { useConnection } from './api/connection.ts';
import { queryClient } from './app/client.ts';
import { startLanguages } from './app/i18n.ts';
import { theme } from './app/theme.ts';
import { useLiveLine } from './app/useLive.ts';
import QuotaPage from './quotas/QuotaPage.tsx';

const page = document.documentElement;

/** The admin keeps its own choice of light or dark, as a class. */
function schemeOfAdmin(): 'light' | 'dark' {
  return page.classList.contains('dark') ? 'dark' : 'light';
}

function onSchemeChange(changed: () => void): () => void {
  const watch = new MutationObserver(changed);
  watch.observe(page, { attributes: true, attributeFilter: ['class'] });
  return () => watch.disconnect();
}

function Editor() {
  useLiveLine();
  const { session } = useConnection();
  useEffect(() => {
    // The admin's own sign-in page comes back here.
    if (session === 'expired') window.location.reload();
  }, [session]);
  return <QuotaPage />;
}

/** A link to a page of the console: another document. */
function Elsewhere() {
  useEffect(() => window.location.reload(), []);
  return null;
}

const router = createBrowserRouter([
  { path: window.location.pathname, element: <Editor /> },
  { path: '*', element: <Elsewhere /> },
]);

function Embedded() {
  const scheme = useSyncExternalStore(onSchemeChange, schemeOfAdmin);
  return (
    <MantineProvider theme={theme} forceColorScheme={scheme} withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={queryClient}>
        <Suspense>
          <RouterProvider router={router} />
        </Suspense>
      </QueryClientProvider>
    </MantineProvider>
  );
}

const root = document.getElementById('quota-editor');
if (!root) throw new Error('The page has no #quota-editor.');
door.name = 'admin';
await startLanguages();
createRoot(root).render(
  <StrictMode>
    <Embedded />
  </StrictMode>,
);
