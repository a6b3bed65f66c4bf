/** Addresses and their pages; each page is fetched when it is first opened. */
import type { ComponentType } from 'react';
import { createBrowserRouter, redirect } from 'react-router';

import { Gate } from './Gate.tsx';
import { NotFound } from './NotFound.tsx';
import { PageBroken } from './PageBroken.tsx';

const page = (load: () => Promise<{ default: ComponentType }>) => async () => ({ Component: (await load()).default });

export const router = createBrowserRouter([
  {
    path: '/',
    element: <Gate />,
    hydrateFallbackElement: <></>,
    children: [
      {
        errorElement: <PageBroken />,
        children: [
          { index: true, element: <></>, loader: () => redirect('/fleet') },
          { path: 'fleet', lazy: page(() => import('../fleet/FleetPage.tsx')) },
          { path: 'fleet/:name', lazy: page(() => import('../fleet/ClusterPage.tsx')) },
          { path: 'fleet/:name/drain', lazy: page(() => import('../fleet/DrainPage.tsx')) },
          { path: 'fleet/:name/nodes/:node', lazy: page(() => import('../fleet/NodePage.tsx')) },
          { path: 'whatif', lazy: page(() => import('../whatif/WhatIfPage.tsx')) },
          { path: 'jobs', lazy: page(() => import('../jobs/JobsPage.tsx')) },
          { path: 'jobs/:id', lazy: page(() => import('../jobs/JobPage.tsx')) },
          { path: 'submit', lazy: page(() => import('../submit/SubmitPage.tsx')) },
          { path: 'quotas', lazy: page(() => import('../quotas/QuotaPage.tsx')) },
          { path: 'join', lazy: page(() => import('../fleet/JoinPage.tsx')) },
          { path: 'policies', lazy: page(() => import('../policies/PoliciesPage.tsx')) },
          { path: 'incidents', lazy: page(() => import('../incidents/IncidentsPage.tsx')) },
          { path: 'incidents/:id', lazy: page(() => import('../incidents/IncidentPage.tsx')) },
          { path: 'failovers', element: <></>, loader: () => redirect('/incidents') },
          { path: 'accounting', lazy: page(() => import('../reports/AccountingPage.tsx')) },
          { path: 'reliability', lazy: page(() => import('../reports/ReliabilityPage.tsx')) },
          { path: 'events', lazy: page(() => import('../admin/EventsPage.tsx')) },
          { path: 'audit', lazy: page(() => import('../admin/AuditPage.tsx')) },
          { path: 'access', lazy: page(() => import('../admin/AccessPage.tsx')) },
          { path: 'login', lazy: page(() => import('./LoginPage.tsx')) },
          { path: 'system', lazy: page(() => import('../admin/SystemPage.tsx')) },
          { path: '*', element: <NotFound /> },
        ],
      },
    ],
  },
]);
