/** The shapes the REST API speaks, as its schema names them. */

export interface Page<Item> {
  count: number;
  next: string | null;
  previous: string | null;
  results: Item[];
}

/** Amounts by resource name in whole units: milli-cores, bytes, devices. */
export type Amounts = Record<string, number>;

/** A role in one namespace, or in all of them (empty). */
export interface Role {
  role: string;
  namespace: string;
}

export interface Me {
  username: string;
  roles: Role[];
  can: Record<string, boolean>;
}

export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

export interface Capacity {
  allocatable: number;
  requested: number;
  held: number;
  free: number;
}

export type ClusterState = 'Ready' | 'NotReady' | 'Unknown';

export interface Cluster {
  name: string;
  state: ClusterState;
  reason: string;
  message: string;
  cordoned: boolean;
  version: string;
  region: string;
  zone: string;
  labels: Record<string, string>;
  taints: Taint[];
  last_heartbeat: string | null;
  nodes: { total: number; ready: number };
  capacity: Record<string, Capacity>;
  jobs: { running: number; placed: number };
}

export interface Node {
  name: string;
  ready: boolean;
  unschedulable: boolean;
  labels: Record<string, string>;
  taints: Taint[];
  allocatable: Amounts;
  requested: Amounts;
}

export type JobState =
  | 'Queued'
  | 'Admitted'
  | 'Placed'
  | 'Dispatched'
  | 'Running'
  | 'Succeeded'
  | 'Failed'
  | 'Suspended'
  | 'Reclaiming'
  | 'Moving'
  | 'Backoff';

export interface Reason {
  code: string;
  message: string;
}

export interface JobRole {
  name: string;
  replicas: number;
  request: Amounts;
}

export interface Job {
  id: string;
  kind: string;
  namespace: string;
  name: string;
  state: JobState;
  reason: Reason | null;
  cluster: string | null;
  attempt: number;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  roles: JobRole[];
  gpus: number;
  priority: number;
  suspended: boolean;
}

export interface JobDetail extends Job {
  manifest: Record<string, unknown>;
  status: Record<string, unknown>;
  binding: Record<string, unknown> | null;
}

export interface JobEvent {
  id: string | number;
  type: string;
  reason: string;
  message: string;
  source: string;
  count: number;
  first_at: string;
  last_at: string;
}

export interface Pod {
  name: string;
  role: string;
  node: string;
  phase: string;
  restarts: number;
}
