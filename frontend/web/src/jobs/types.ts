/** Short names for what the server returns of a job beyond its row. */
import type { components } from '../api/schema.d.ts';

type Schemas = components['schemas'];

export type Timeline = Schemas['Timeline'];
export type Slice = Schemas['Slice'];
export type Owner = Slice['owner'];
export type Gate = Schemas['Gate'];
export type Explanation = Schemas['Explanation'];
export type Explained = Schemas['ClusterExplained'];
export type Change = Schemas['Change'];
export type Step = Schemas['Step'];
export type QueueUnit = Schemas['QueueUnit'];
export type Attempt = Schemas['Attempt'];
export type Copy = Schemas['Copy'];
export type Notice = Schemas['Notice'];
export type Groups = Schemas['Groups'];
export type BulkDone = Schemas['BulkDone'];
