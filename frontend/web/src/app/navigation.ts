/** The rooms of the console: what stands in the left navigation, and the keys that lead there. */
import {
  Activity,
  ChartColumn,
  Gauge,
  HeartPulse,
  History,
  KeyRound,
  Layers,
  ListTree,
  type LucideIcon,
  Network,
  Route,
  Siren,
  Split,
  SquarePen,
} from 'lucide-react';

import type en from '../locales/en.json';

interface Room {
  to: string;
  name: keyof (typeof en)['rooms'];
  keys: string;
  icon: LucideIcon;
}

export const ROOMS: Room[] = [
  { to: '/fleet', name: 'fleet', keys: 'g f', icon: Network },
  { to: '/jobs', name: 'jobs', keys: 'g j', icon: Layers },
  { to: '/quotas', name: 'quotas', keys: 'g q', icon: ListTree },
  { to: '/submit', name: 'submit', keys: 'g s', icon: SquarePen },
  { to: '/policies', name: 'policies', keys: 'g p', icon: Route },
  { to: '/whatif', name: 'whatif', keys: 'g w', icon: Split },
  { to: '/incidents', name: 'incidents', keys: 'g o', icon: Siren },
  { to: '/accounting', name: 'accounting', keys: 'g c', icon: ChartColumn },
  { to: '/reliability', name: 'reliability', keys: 'g l', icon: Gauge },
  { to: '/events', name: 'events', keys: 'g e', icon: Activity },
  { to: '/audit', name: 'audit', keys: 'g a', icon: History },
  { to: '/access', name: 'access', keys: 'g r', icon: KeyRound },
  { to: '/system', name: 'system', keys: 'g y', icon: HeartPulse },
];
