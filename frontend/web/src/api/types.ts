/** Short names for the shapes of the REST API. The shapes themselves are generated: `npm run generate`. */
import type { components } from './schema.d.ts';

type Schemas = components['schemas'];

export interface Page<Item> {
  count: number;
  next?: string | null;
  previous?: string | null;
  results: Item[];
}

/** Amounts by resource name in whole units: milli-cores, bytes, devices. */
export type Amounts = Record<string, number>;

export type Me = Schemas['Me'];
export type Role = Schemas['Role'];
export type Session = Schemas['Session'];
export type Capacity = Schemas['Amount'];
export type Cluster = Schemas['Cluster'];
export type ClusterDetail = Schemas['ClusterDetail'];
export type Evictions = Schemas['Evictions'];
export type ClusterState = Cluster['state'];
export type Node = Schemas['Node'];
export type Job = Schemas['Job'];
export type OtherCopy = Schemas['OtherCopy'];
export type JobDetail = Schemas['JobDetail'];
export type JobState = Job['state'];
export type JobRole = Schemas['GangRole'];
export type Reason = Schemas['Reason'];
export type Verdict = Schemas['Short'];
export type JobEvent = Schemas['Event'];
export type Pod = Schemas['Pod'];
export type EndedPod = Schemas['EndedPod'];
export type QuotaTree = Schemas['QuotaTree'];
export type QuotaNode = Schemas['QuotaNode'];
export type QuotaAmount = Schemas['QuotaAmount'];
export type QuotaChange = Schemas['QuotaChangeRequest'];
export type QuotaPreview = Schemas['Preview'];
export type QuotaEffect = Schemas['Effect'];
export type QuotaRevision = Schemas['Revision'];
export type QuotaRevisionDetail = Schemas['RevisionDetail'];
export type QuotaSaved = Schemas['Saved'];
export type Queue = Schemas['Queue'];
export type QueueState = Queue['state'];
export type ApplyPreview = Schemas['ApplyPreview'];
export type Outlook = Schemas['Outlook'];
export type KnownKind = Schemas['KnownKind'];
export type KnownKinds = Schemas['KnownKinds'];
export type SchemaField = Schemas['Field'];
export type SchemaPlace = Schemas['Place'];
export type Applied = Schemas['Applied'];
export type QuotaDifference = Schemas['Difference'];
export type GpuModel = Schemas['GpuModel'];
export type GpuMap = Schemas['GpuMap'];
export type NodeGpus = Schemas['NodeGpus'];
export type HoldOnNode = Schemas['HoldOnNode'];
export type PodOnNode = Schemas['PodOnNode'];
export type Check = Schemas['Check'];
export type Checks = Schemas['Checks'];
export type Group = Schemas['Group'];
export type Groups = Schemas['Groups'];
export type WhatIf = Schemas['WhatIf'];
export type Suppose = Schemas['SupposeRequest'];
export type Policy = Schemas['Policy'];
export type AuditLine = Schemas['AuditLine'];
export type AuditEntry = Schemas['AuditEntry'];
export type User = Schemas['User'];
export type Grant = Schemas['Grant'];
export type Lead = Schemas['Lead'];
export type Token = Schemas['Token'];
export type MintedToken = Schemas['MintedToken'];
export type SecondFactorState = Schemas['SecondFactor'];
export type EnrolmentStart = Schemas['Enrolment'];
export type FactorCodes = Schemas['RecoveryCodes'];
export type LoginCode = Schemas['LoginCode'];
export type Health = Schemas['System'];
export type Series = Schemas['SeriesAnswer'];
export type GpuHours = Schemas['GpuHours'];
export type GpuHoursAnswer = Schemas['GpuHoursAnswer'];
export type PastAttempt = Schemas['PastAttempt'];
export type PastAttempts = Schemas['PastAttempts'];
export type Incident = Schemas['Incident'];
export type IncidentStory = Schemas['IncidentStory'];
