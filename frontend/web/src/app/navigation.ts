/** The rooms of the console: what stands in the left navigation, and the keys that lead there. */
import { Layers, ListTree, type LucideIcon, Network, SquarePen } from 'lucide-react';

interface Room {
  to: string;
  name: 'fleet' | 'jobs' | 'quotas' | 'submit';
  keys: string;
  icon: LucideIcon;
}

export const ROOMS: Room[] = [
  { to: '/fleet', name: 'fleet', keys: 'g f', icon: Network },
  { to: '/jobs', name: 'jobs', keys: 'g j', icon: Layers },
  { to: '/quotas', name: 'quotas', keys: 'g q', icon: ListTree },
  { to: '/submit', name: 'submit', keys: 'g s', icon: SquarePen },
];
