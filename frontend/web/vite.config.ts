/** How the console is built, served while it is worked on, and tested. */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

import { mantineVariables } from './scripts/mantine-variables.ts';

const server = process.env['CONVOY_URL'] ?? 'http://127.0.0.1:8000';

export default defineConfig({
  plugins: [react(), mantineVariables()],
  server: {
    proxy: {
      '/api': server,
      '/admin': server,
      '/signin': server,
      '/static': server,
      '/livez': server,
      '/ws': { target: server, ws: true },
    },
  },
  build: {
    target: 'es2022',
    manifest: true,
    // The console, and its quota editor as a page of the Django admin.
    rollupOptions: { input: ['index.html', 'src/quotaEditor.tsx'] },
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: {
    environment: 'happy-dom',
    include: ['src/**/*.test.{ts,tsx}'],
    setupFiles: ['vitest.setup.ts'],
    restoreMocks: true,
    testTimeout: 60_000,
    unstubGlobals: true,
  },
});
