"""What the REST API answers, as types. Written by frontend/sdk_types.py from docs/openapi.json: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Actions(TypedDict):
    suspend: Allowed
    resume: Allowed
    delete: Allowed


class Allowed(TypedDict):
    allowed: bool
    reason: str
    """Why not; empty when it is allowed"""


class Amount(TypedDict):
    allocatable: int
    requested: int
    held: int
    free: int


class Applied(TypedDict):
    kind: str
    namespace: str
    name: str
    id: str
    """As in the paths of jobs, policies and dependents"""
    action: AppliedActionEnum
    warnings: list[str]

AppliedActionEnum = Literal['created', 'configured', 'unchanged']


class AppliedList(TypedDict):
    results: list[Applied]


class Attempt(TypedDict):
    number: int
    cluster: str
    placed_at: str
    started_at: str | None
    ended_at: str | None
    outcome: str
    message: str
    cause: Literal['CodeError', 'DataError', 'OutOfMemory', 'Infrastructure', 'Evicted', 'MemberRefused', 'CopyRemoved', 'Unknown'] | None
    """Why it failed; null: it did not, or that is not known yet"""
    evidence: list[PodEnd]
    """The pods that show the cause, at most 20"""
    diagnosis: Diagnosis | None
    """Null: it did not fail, or is not diagnosed yet"""
    explanation: list[Short]
    """What it was placed by: clusters, best first"""
    gpus: int | None
    """Null: all that its job has"""
    sizes: list[FormerSize]
    """Before each resize"""


class Change(TypedDict):
    kind: KindEnum
    message: str
    cluster: str
    path: str
    """The node of the quota tree"""
    queue: str
    """The queue that is to be opened"""
    bound: str
    """Which limit is to be raised: min or max"""
    role: str
    """Whose pods ask for too much; empty: the whole gang"""
    jobs: list[str]
    """That would have to end, as far as they may be seen"""
    held_by: list[JobRef]
    """All of them, with what each holds"""
    count: int
    """Of nodes, or of those jobs that have to end"""
    beside: int
    """Nodes it takes while what runs there goes on; 0: as many, or unknown"""
    amounts: dict[str, int]
    """Of one node, of the limit, or borrowed"""
    at: str | None
    """When it is over, or when the queue was closed"""
    by: str
    """Who closed the queue"""
    comment: str
    """Why the queue was closed, or the taints"""
    manifest: dict[str, Any]
    """What to apply, where that is all it takes; empty: it takes something else"""
    allowed: bool
    """Whether the reader may do it"""
    needs: str
    """The role that may do it; empty: everybody, or time alone"""
    steps: list[Step]
    """Of AllOf: none of them helps alone"""


class Claim(TypedDict):
    job: str
    """Empty: one that the reader may not see"""
    amounts: dict[str, int]
    pods: int
    made_at: str
    ends: str
    """In words: a hold has no time limit, it ends with the event it waits for"""
    until: str | None
    """When that is expected, where it is known"""


class Cluster(TypedDict):
    name: str
    uid: str
    state: StateEnum
    reason: str
    message: str
    raw: str
    """The network error, verbatim"""
    state_since: str
    cordoned: bool
    drained: bool
    """Its jobs are to move away, and it gets no new ones."""
    version: str
    provider: str
    impersonation: bool
    region: str
    zone: str
    labels: dict[str, str]
    taints: list[Taint]
    last_heartbeat: str | None
    synced_at: str | None
    stale_since: str | None
    circuit_opened_at: str | None
    circuit_probe_at: str | None
    joined_at: str
    nodes: Count
    capacity: dict[str, Amount]
    gpus: Amount
    """Devices of all resources that are GPUs or other accelerators"""
    jobs: ClusterJobs
    apis: dict[str, dict[str, str]]
    scheduler: str
    reservations: str
    """Why it cannot hold capacity before a job is sent; empty: it can"""
    simulated: bool
    """Played by the simulator beside this product"""
    resource_version: int


class ClusterExplained(TypedDict):
    cluster: str
    fits: bool
    chosen: bool
    """Where the job is"""
    code: str
    cause: Literal['None', 'Filter', 'NoNodeAllowed', 'NodeTooSmall', 'Short', 'Fragmented', 'NotTogether', 'NoDomain', 'Kept', 'Excluded', 'Unsure']
    """The obstacle, finer than the code"""
    message: str
    missing: dict[str, int]
    """Missing amounts, in whole units"""
    short: dict[str, int]
    """Use `missing`"""
    role: str
    """Whose pods it is about; empty: the whole gang"""
    nodes: str
    """The class of nodes it is about"""
    never_fits: bool
    """Proven: not even when the cluster is empty"""
    never: bool
    """Use `never_fits`"""
    affinity_term: int
    """Index, from 0, of the policy's ordered affinity term that selects the cluster"""
    term: int
    """Use `affinity_term`"""
    score: float
    score_parts: dict[str, float]
    """The score by part"""
    parts: dict[str, float]
    """Use `score_parts`"""
    holds: list[Claim]
    """The oldest holds on missing amounts"""
    held: list[Claim]
    """Use `holds`"""


class ClusterJobs(TypedDict):
    running: int
    placed: int
    """Decided for this cluster, not running yet"""

CodeEnum = Literal['CopyUnreachable', 'CopyBeingStopped']


class Count(TypedDict):
    total: int
    ready: int


class Diagnosis(TypedDict):
    category: DiagnosisCategoryEnum
    """Whose fault it is: of the code, the data, the infrastructure ... * `code` - CODE * `data` - DATA * `infrastructure` - INFRASTRUCTURE * `preemption` - PREEMPTION * `unknown` - UNKNOWN"""
    symptom: NotRequired[SymptomEnum]
    """What the log shows * `GpuFault` - GPU_FAULT * `NodeCheck` - NODE_CHECK * `OutOfMemory` - OUT_OF_MEMORY * `GpuOutOfMemory` - GPU_OUT_OF_MEMORY * `DataError` - DATA * `Exception` - EXCEPTION * `NetworkFault` - NETWORK_FAULT * `Killed` - KILLED * `Crashed` - CRASHED * `Terminated` - TERMINATED * `Exited` - EXITED * `PeerLost` - PEER_LOST"""
    summary: str
    """All of it in one line"""
    message: str
    """The message of the failing process, for example its exception"""
    rank: NotRequired[int]
    """The rank that failed, if its log names it"""
    where: NotRequired[str]
    """File, line and function"""
    excerpt: NotRequired[list[str]]
    """Lines of the log, at most 12"""
    pod: NotRequired[str]
    node: NotRequired[str]
    exit_code: NotRequired[int]

DiagnosisCategoryEnum = Literal['code', 'data', 'infrastructure', 'preemption', 'unknown']

EffectEnum = Literal['NoSchedule', 'PreferNoSchedule', 'NoExecute']


class EndedPod(TypedDict):
    name: str
    namespace: str
    uid: str
    cluster: str
    attempt: int
    role: str
    index: int
    phase: str
    ended_at: str
    log: LogEnum
    """Due: it is being read from the cluster * `Due` - Due * `Kept` - Kept * `Lost` - Lost"""
    message: str
    """Why the log, or a part of it, is not kept"""
    log_bytes: int | None
    """Of all its containers; null: none"""


class Event(TypedDict):
    id: str
    regarding: Regarding
    type: TypeEnum
    reason: str
    message: str
    source: str
    first_at: str
    last_at: str
    count: int


class Explanation(TypedDict):
    id: str
    kind: str
    namespace: str
    name: str
    state: str
    cluster: NotRequired[str | None]
    attempt: int
    at: str
    """When the clusters were looked at"""
    outcome: ExplanationOutcomeEnum
    """Fits: only its turn or its quota is in the way"""
    message: str
    never_fits: bool
    """No cluster that its policy allows could hold it even empty"""
    never: bool
    """Use `never_fits`"""
    reason: Reason | None
    """As the scheduler last wrote it"""
    quota: QuotaVerdict | None
    speed: Speed | None
    """Where it is or would go now; null: the job does not declare its model's size"""
    clusters: list[ClusterExplained]
    """Those that hold it first, as they would be chosen"""
    changes: list[Change]
    """What would let it start, what costs least first"""

ExplanationOutcomeEnum = Literal['Waits', 'Fits', 'Placed', 'Ended']


class FormerSize(TypedDict):
    until: str
    gpus: int


class GangRole(TypedDict):
    name: str
    replicas: int
    request: dict[str, int]
    gpus: int
    """Devices of one pod, of all resources that are GPUs or other accelerators."""


class Growth(TypedDict):
    sizes: dict[str, int]
    """Pods by role"""
    by: str
    at: str
    reason: NotRequired[Reason]
    """Why the job has not grown yet"""


class Job(TypedDict):
    id: str
    kind: str
    api_version: str
    namespace: str
    name: str
    labels: dict[str, str]
    state: Literal['Queued', 'Placed', 'Dispatched', 'Running', 'Succeeded', 'Failed', 'Suspended', 'Reclaiming', 'Moving', 'Backoff']
    reason: Reason | None
    cluster: str | None
    attempt: int
    created_at: str
    queued_at: str
    started_at: str | None
    finished_at: str | None
    deleting_at: str | None
    roles: list[GangRole]
    size: dict[str, RoleSize] | None
    """By role; null: not resized while it runs"""
    resize: Growth | None
    """The growth that waits; null: none does"""
    gpus: int
    total: dict[str, int]
    pods_running: int
    """Pods of its current attempt that run now, of all that its roles have; 0 once it has ended"""
    progress: Progress | None
    """Null: it reports none"""
    priority: int
    submitted_by: str
    ran_s: int
    """Seconds that all its pods ran, over its attempts that have ended; without moves and waits"""
    runs_since: str | None
    """Since when all pods of its current attempt run; null: they do not"""
    suspended: bool
    policy: PolicyName | None
    leaf: str
    preemptible: bool
    resource_version: int
    actions: Actions


class JobBinding(TypedDict):
    cluster: str | None
    attempt: int
    result: str
    explanation: list[Short]
    scheduled_at: str | None


class JobDetail(TypedDict):
    id: str
    kind: str
    api_version: str
    namespace: str
    name: str
    labels: dict[str, str]
    state: Literal['Queued', 'Placed', 'Dispatched', 'Running', 'Succeeded', 'Failed', 'Suspended', 'Reclaiming', 'Moving', 'Backoff']
    reason: Reason | None
    cluster: str | None
    attempt: int
    created_at: str
    queued_at: str
    started_at: str | None
    finished_at: str | None
    deleting_at: str | None
    roles: list[GangRole]
    size: dict[str, RoleSize] | None
    """By role; null: not resized while it runs"""
    resize: Growth | None
    """The growth that waits; null: none does"""
    gpus: int
    total: dict[str, int]
    pods_running: int
    """Pods of its current attempt that run now, of all that its roles have; 0 once it has ended"""
    progress: Progress | None
    """Null: it reports none"""
    priority: int
    submitted_by: str
    ran_s: int
    """Seconds that all its pods ran, over its attempts that have ended; without moves and waits"""
    runs_since: str | None
    """Since when all pods of its current attempt run; null: they do not"""
    suspended: bool
    policy: PolicyName | None
    leaf: str
    preemptible: bool
    resource_version: int
    actions: Actions
    generation: int
    manifest: dict[str, Any]
    status: dict[str, Any]
    shares: list[Share]
    """Of a job that is divided over clusters; else empty"""
    binding: JobBinding | None
    placement: Placement | None
    """Where its ranks are; null where no nodes were chosen"""
    preserved_state: list[PreservedState]
    """What its later attempts get; empty without rules"""
    other_copies: list[OtherCopy]
    """Copies that may run beside its current one"""


class JobRef(TypedDict):
    id: str
    """Empty: it may not be seen"""
    name: str
    """Namespace/name; empty: it may not be seen"""
    amounts: dict[str, int]
    allowed: bool
    """Whether the reader may suspend it"""

KindEnum = Literal['MakePolicy', 'MakeQuotaTree', 'AddNamespace', 'Resume', 'OpenQueue', 'LookAtJob', 'ReturnBorrowed', 'RaiseQuota', 'LowerRequest', 'AllOf', 'JoinCluster', 'RestoreCluster', 'LookAtCluster', 'WaitUntil', 'WaitForGang', 'Uncordon', 'Tolerate', 'WaitForJobs', 'Select', 'AddNodes', 'SubmitAgain', 'ChangeAfter', 'RaiseBudget', 'EndBefore']

LogEnum = Literal['Due', 'Kept', 'Lost']


class OtherCopy(TypedDict):
    code: CodeEnum
    message: str
    attempt: int
    cluster: str
    since: str | None
    """When the job left it"""
    current: int
    """The attempt that counts"""


class Placement(TypedDict):
    nodes: dict[str, list[Run]]
    """Per role, in the order of ranks"""
    shared: dict[str, str]
    """Zone, psw, asw that all of its ring share"""
    switches: int
    """Access switches its ring goes over; 0: not known"""
    crossings: int
    """Steps of the ring from one switch to another"""
    met: bool
    """Whether the topology it prefers was found"""
    gpus: dict[str, list[int]]
    """Chosen by their links, per node"""
    ring_gbs: float
    """Of the slowest of these sets; 0: none was chosen"""
    speed: Speed | None


class Pod(TypedDict):
    name: str
    namespace: str
    uid: str
    cluster: str
    attempt: int
    role: str
    index: int
    node: str
    phase: str
    ready: str
    """Containers that are ready, of all: 1/1"""
    ready_containers: int
    containers: int
    restarts: int
    reason: str
    message: str
    created_at: str
    started_at: str | None
    stale_since: str | None
    """Since when its cluster is silent: the pod is shown as of then"""


class PodEnd(TypedDict):
    pod: str
    phase: NotRequired[str]
    reason: NotRequired[str]
    exit_code: NotRequired[int]
    disruption: NotRequired[str]
    """Why the cluster took the pod away"""
    node: NotRequired[str]
    node_ready: NotRequired[bool]
    restarts: NotRequired[int]
    message: NotRequired[str]


class PolicyName(TypedDict):
    kind: str
    namespace: str
    name: str


class PreservedState(TypedDict):
    name: str
    """AliasLabelName of the rule"""
    value: str
    attempt: int
    """The attempt that reported it; 0: there is no value yet"""
    at: str | None
    problem: str
    """Why a later value is not kept; empty: there is none"""


class Progress(TypedDict):
    attempt: int
    """The attempt that reported it"""
    step: int | None
    """Steps that are done"""
    total: int | None
    percent: int | None
    """Of its steps; where it reports none, as it reported it"""
    eta_s: int | None
    """Seconds to its end, as it estimated then"""
    loss: float | None
    world_size: int | None
    saved_step: int | None
    """Of its last checkpoint"""
    reported_at: str


class QuotaVerdict(TypedDict):
    code: str
    path: str
    """The node of the quota tree whose limit it is"""
    message: str
    resource: NotRequired[str]
    asked: NotRequired[int]
    """In whole units, as the others"""
    used: NotRequired[int]
    kept: NotRequired[int]
    """What idle queues keep back out of the same limit"""
    max: NotRequired[int]
    min: NotRequired[int]
    """Instead of max, for a job that may not be preempted"""
    entitled: NotRequired[bool]
    """Others borrow what it was promised"""
    position: NotRequired[int]
    blocker: NotRequired[str]
    """The job that holds up the queue; empty when it is not the caller's to see"""
    queue: NotRequired[str]
    """The queue that is closed"""
    state: NotRequired[str]
    """Of that queue"""
    from_jobs: NotRequired[list[str]]
    """Jobs that leave for it; empty names are not the caller's to see"""
    until: NotRequired[str | None]
    """When they are gone at the latest, the budget is renewed, or the window ends"""
    used_gpu_hours: NotRequired[float]
    """Of the budget that is spent"""
    gpu_hours: NotRequired[float]
    """The budget"""
    per: NotRequired[str]
    """The period of the budget"""
    window: NotRequired[str]
    """The node of the window that lies ahead"""
    begin: NotRequired[str]
    """When that window begins"""
    ends: NotRequired[str | None]
    """When the job would have ended at the latest; null: nothing says"""


class Reason(TypedDict):
    code: str
    message: str
    clusters: NotRequired[list[Short]]
    quota: NotRequired[QuotaVerdict]
    """What the quota says, beside the clusters"""
    at: NotRequired[str]
    """When the scheduler last looked"""
    cause: NotRequired[Literal['CodeError', 'DataError', 'OutOfMemory', 'Infrastructure', 'Evicted', 'MemberRefused', 'CopyRemoved', 'Unknown']]
    """Of a failure: the program, its memory, its node ..."""


class Regarding(TypedDict):
    kind: str
    namespace: str
    name: str
    uid: str


class RoleSize(TypedDict):
    replicas: int
    """The size in force"""
    min: int
    max: int | None
    """Null: the quota's alone"""


class Run(TypedDict):
    node: str
    pods: int
    """Ranks in a row"""


class Share(TypedDict):
    attempt: int
    cluster: str
    replicas: int
    """Pods at a time; 0 once it is lost"""
    completions: int
    """Pods that have to succeed there; 0: not counted"""
    state: Literal['Placed', 'Dispatched', 'Running', 'Backoff', 'Succeeded', 'Lost']
    """Lost: it has left; what it had completed counts"""


class Short(TypedDict):
    cluster: str
    fits: NotRequired[bool]
    code: str
    message: str
    missing: NotRequired[dict[str, int]]
    short: NotRequired[dict[str, int]]
    """Use `missing`"""
    score: NotRequired[float]


class Speed(TypedDict):
    over: str
    """What the ring goes over at its slowest"""
    gbs: float
    """Its bus bandwidth, GB/s"""
    step_s: float
    per_gpu: float
    total: float
    speedup: float
    """Over the slowest place, nodes apart"""

StateEnum = Literal['Ready', 'NotReady', 'Unknown']


class Step(TypedDict):
    kind: KindEnum
    message: str
    cluster: str
    path: str
    """The node of the quota tree"""
    queue: str
    """The queue that is to be opened"""
    bound: str
    """Which limit is to be raised: min or max"""
    role: str
    """Whose pods ask for too much; empty: the whole gang"""
    jobs: list[str]
    """That would have to end, as far as they may be seen"""
    held_by: list[JobRef]
    """All of them, with what each holds"""
    count: int
    """Of nodes, or of those jobs that have to end"""
    beside: int
    """Nodes it takes while what runs there goes on; 0: as many, or unknown"""
    amounts: dict[str, int]
    """Of one node, of the limit, or borrowed"""
    at: str | None
    """When it is over, or when the queue was closed"""
    by: str
    """Who closed the queue"""
    comment: str
    """Why the queue was closed, or the taints"""
    manifest: dict[str, Any]
    """What to apply, where that is all it takes; empty: it takes something else"""
    allowed: bool
    """Whether the reader may do it"""
    needs: str
    """The role that may do it; empty: everybody, or time alone"""

SymptomEnum = Literal['GpuFault', 'NodeCheck', 'OutOfMemory', 'GpuOutOfMemory', 'DataError', 'Exception', 'NetworkFault', 'Killed', 'Crashed', 'Terminated', 'Exited', 'PeerLost']


class Taint(TypedDict):
    key: str
    value: NotRequired[str]
    effect: EffectEnum
    timeAdded: NotRequired[str]

TypeEnum = Literal['Normal', 'Warning']
