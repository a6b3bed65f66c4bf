"""What would let one job start, chosen by the gate it stands at, and what of it one reader may be shown.

The table of `jobs.core.explain.remedies` says which kinds there may be; each is built here from what is in force now.
Only looks. Names of jobs in namespaces that the reader may not see are left out: amounts and counts remain.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from django.db.models import Q

from fleet.models import Hold
from jobs import snapshot
from jobs.core import reasons
from jobs.core.admission import admission_pass
from jobs.core.admission.snapshot import Quota
from jobs.core.explain import changes, manifests, remedies
from jobs.core.explain.changes import Occupant, describe_wait
from jobs.core.explain.remedies import PLACEMENT, REMEDIES, Borrower, Change, JobRef, Kind
from jobs.core.gang.flavors import options_of
from jobs.core.gang.requirements import GangRequirements
from jobs.core.gang.types import Gang
from jobs.core.life.dependencies import AFTER
from jobs.core.placement.engine import Engine
from jobs.core.placement.explaining import Look
from jobs.core.placement.types import NodeFacts
from jobs.core.reasons import Amounts, Code
from jobs.core.taints import untolerated
from jobs.models import Job
from jobs.services.lifecycle import dependencies
from jobs.snapshot_rows import capacity_hold_of
from quotas.core.accounts.ledger import Charge
from quotas.core.reclaiming.claims import describe_claim
from quotas.core.trees.amounts import of_job
from quotas.core.trees.flavors import GPU, amount_name, node_flavor
from quotas.models import Queue

Sees = Callable[[str], bool]
"""Whether the reader may see what is in a namespace."""
_HOLDERS_SHOWN = 8


@dataclass
class WaitingJob:
    """A job that waits, and what it waits for: the fleet and its quota as they are now."""

    job: Job
    gang: Gang
    demand: GangRequirements
    engine: Engine
    looks: Sequence[Look]
    now: datetime
    never: bool
    """No cluster could hold it even when empty."""
    occupants: Callable[[str], Sequence[Occupant]]
    nodes: Callable[[str], Sequence[NodeFacts]]
    reserved: Mapping[str, tuple[str, datetime]]
    """Clusters that keep nodes for a big gang: its name, and when it is expected to start."""

    @cached_property
    def quota(self) -> Quota | None:
        return snapshot.load_quota()

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the quota said."""
        return (self.job.reason or {}).get("quota") or {}

    @property
    def charge(self) -> Charge:
        return Charge(self.job.leaf, of_job(self.job.total), self.job.preemptible)

    @property
    def charges(self) -> list[Charge]:
        """What its leaf would be charged: of each flavor that it may use, in the order in which they are tried."""
        quota = self.quota
        options = options_of(quota.ledger.tree, self.job.leaf, self.gang) if quota else ()
        return [option.of(self.gang).charge for option in options] or [self.charge]

    @property
    def fleet(self) -> Amounts:
        """What all clusters have together, empty; GPUs also by flavor."""
        index = self.engine.fleet.states.index
        amounts = {name: int(self.engine.fleet.capacity[:, column].sum()) for name, column in index.items()}
        return amounts | self._by_flavor()

    def _by_flavor(self) -> dict[str, int]:
        flavors = self.quota.ledger.tree.flavors if self.quota else {}
        have = {amount_name(name): 0 for name in flavors}
        for cluster in self.engine.members if flavors else ():
            for node in self.nodes(cluster):
                if name := node_flavor(flavors, node.labels):
                    have[amount_name(name)] += node.allocatable.get(GPU, 0)
        return have


def code_of(job: Job) -> Code:
    if job.suspended:
        return Code.SUSPENDED
    code = (job.reason or {}).get("code", "")
    return Code(code) if code in set(Code) else Code.WAITING_FOR_SCHEDULER


def find_remedies(waiting: WaitingJob) -> list[Change]:
    """In the order of the table; placement's as `changes.nearest_changes` has them."""
    kinds = REMEDIES[code_of(waiting.job)]
    if kinds == PLACEMENT:
        return _placement(waiting)
    candidates = [change for kind in kinds for change in BUILDERS[kind](waiting)]
    return _with_room(waiting, candidates) if kinds in _QUOTA else candidates


_QUOTA = (REMEDIES[Code.QUOTA_EXCEEDED], REMEDIES[Code.MAX_JOBS_REACHED])


def _with_room(waiting: WaitingJob, candidates: Sequence[Change]) -> list[Change]:
    """Advice about the quota, joined by what makes room on a cluster where the quota alone would not let the job start."""
    if waiting.gang.division is not None or any(look.code is Code.FITS for look in waiting.looks):
        return list(candidates)
    rooms = _placement(waiting)
    joined = [each for change in candidates for each in _joined(waiting, change, rooms)]
    return list({change.message: change for change in joined}.values())


def _joined(waiting: WaitingJob, change: Change, rooms: Sequence[Change]) -> list[Change]:
    if not rooms or (len(change.jobs) == change.count and _fits_without(waiting, change.jobs)):
        return [change]
    if change.kind is Kind.WAIT_FOR_JOBS:
        both = next((room for room in rooms if room.jobs and _given_back(waiting, room.jobs) >= _short(waiting)), None)
        if both is not None:
            return [both]
    return remedies.all_of([change, rooms[0]])


def _fits_without(waiting: WaitingJob, jobs: Iterable[JobRef]) -> bool:
    uids = {job.uid for job in jobs}
    rows = Hold.objects.filter(job_uid__in=uids, released_at__isnull=True).select_related("cluster")
    holds = [capacity_hold_of(hold, hold.cluster.name) for hold in rows]
    places = {hold.cluster for hold in holds}
    places |= set(Job.objects.filter(uid__in=uids, cluster__isnull=False).values_list("cluster__name", flat=True))
    ended = {name: [each for each in waiting.occupants(name) if each.uid in uids] for name in sorted(places)}
    return changes.fits_without(waiting.engine, waiting.gang, waiting.demand, waiting.now, ended, holds)


def _given_back(waiting: WaitingJob, jobs: Iterable[JobRef]) -> int:
    """How much of what is short the jobs give back to the node that said no."""
    path, resource = waiting.facts["path"], waiting.facts["resource"]
    below = Q(leaf=path) | Q(leaf__startswith=f"{path}/")
    rows = snapshot.charged_jobs().filter(below, uid__in=[job.uid for job in jobs]).values_list("charge", flat=True)
    return sum((charge or {}).get(resource, 0) for charge in rows)


def of_placed(job: Job) -> list[Change]:
    """For a job that has its place and does not run there yet."""
    if Kind.LOOK_AT_CLUSTER not in REMEDIES[code_of(job)] or job.cluster is None:
        return []
    name = job.cluster.name
    return [Change(Kind.LOOK_AT_CLUSTER, f"see what is wrong with {name}", name)]


def shown_to(changes: Iterable[Change], sees: Sees) -> list[Change]:
    """Without the names of jobs that the reader may not see."""
    return [_shown(change, sees) for change in changes]


def _shown(change: Change, sees: Sees) -> Change:
    jobs = tuple(job if sees(job.name.partition("/")[0]) else replace(job, uid="", name="") for job in change.jobs)
    steps = tuple(_shown(step, sees) for step in change.steps)
    if all(job.is_named for job in jobs) and steps == change.steps:
        return change
    if steps:
        return replace(change, steps=steps, message=" and ".join(step.message for step in steps))
    return replace(change, jobs=jobs, message=_message_without_names(replace(change, jobs=jobs)))


def _message_without_names(change: Change) -> str:
    match change.kind:
        case Kind.RETURN_BORROWED:
            return change.message
        case Kind.WAIT_FOR_GANG:
            return f"wait for a job of another team to start on {change.cluster}"
        case Kind.LOOK_AT_JOB:
            return "wait for the job of another team that holds up the queue"
    message = describe_wait(change.names, change.count, len(change.jobs) - len(change.names))
    return f"{message} on {change.cluster}" if change.cluster else message


def _placement(waiting: WaitingJob) -> list[Change]:
    if any(look.code is Code.FITS and look.cluster not in waiting.reserved for look in waiting.looks):
        return []
    if waiting.never:
        return [*_enlarged(waiting), *_lowered(waiting)]
    engine, gang, demand = waiting.engine, waiting.gang, waiting.demand
    nearest = changes.nearest_changes(engine, gang, demand, waiting.now, waiting.occupants)
    return [_with_policy(waiting, change) for change in [*_kept(waiting), *nearest]]


def _with_policy(waiting: WaitingJob, change: Change) -> Change:
    """With the job's policy, changed as the advice says."""
    if (policy := waiting.job.policy) is None:
        return change
    if change.kind is Kind.SELECT:
        return replace(change, manifest=manifests.select_job(policy.manifest, change.cluster))
    if change.kind is Kind.TOLERATE:
        tolerations = waiting.gang.policy.tolerations if waiting.gang.policy else ()
        taints = [t for t in waiting.engine.members[change.cluster].taints if untolerated([t], tolerations)]
        return replace(change, manifest=manifests.tolerate_taints(policy.manifest, taints))
    return change


def _kept(waiting: WaitingJob) -> list[Change]:
    for look in waiting.looks:
        if look.code is Code.KEPT_FOR_GANG and look.cluster in waiting.reserved:
            name, until = waiting.reserved[look.cluster]
            message = f"wait for {name} to start on {look.cluster}, expected at {until:%H:%M:%S} UTC"
            jobs = (JobRef(_uid_of(name), name),)
            return [Change(Kind.WAIT_FOR_GANG, message, look.cluster, jobs=jobs, count=1, at=until)]
    return []


def _uid_of(name: str) -> str:
    """Of the job ``namespace/name``; empty when there is none any more."""
    namespace, _, short = name.partition("/")
    uid = Job.objects.filter(namespace=namespace, name=short).values_list("uid", flat=True).first()
    return str(uid) if uid else ""


def _enlarged(waiting: WaitingJob) -> list[Change]:
    about = (waiting.engine, waiting.gang, waiting.demand, waiting.now, waiting.looks, waiting.nodes)
    return [change] if (change := changes.nodes_to_add(*about)) else []


def _lowered(waiting: WaitingJob) -> list[Change]:
    """The smaller of what the quota and the clusters could give."""
    fitting = changes.largest_fitting(waiting.engine, waiting.demand, waiting.looks) if waiting.never else None
    role = fitting.role if fitting else ""
    limits = dict(fitting.amounts) if fitting else {}
    facts = waiting.facts
    if facts.get("code") == Code.NEVER_FITS and facts.get("bound") and not role:
        resource = facts["resource"]
        most = int(facts.get(facts["bound"]) or 0) - int(facts.get("kept") or 0)
        limits[resource] = min(most, limits.get(resource, most))
    if not limits or min(limits.values()) <= 0:
        return []
    message = f"ask for at most {reasons.amounts(limits)}" + (f" for one {role} pod" if role else "")
    return [Change(Kind.LOWER_REQUEST, message, role=role, amounts=limits)]


def _all_of(waiting: WaitingJob) -> list[Change]:
    """Nodes and limits together, if it takes both; nothing where either cannot be had."""
    nodes = _enlarged(waiting) if waiting.never else []
    if waiting.never and not nodes:
        return []
    if not (raised := _raised(waiting, nodes)):
        return list(nodes)
    return [each for change in raised for each in remedies.all_of([*(change.steps or [change]), *nodes])]


def _raised(waiting: WaitingJob, nodes: Sequence[Change] = ()) -> list[Change]:
    quota, facts = waiting.quota, waiting.facts
    if quota is None or waiting.job.leaf not in quota.ledger.path_rows:
        return []
    fleet = dict(waiting.fleet)
    for change in nodes:
        for resource, amount in change.amounts.items():
            fleet[resource] = fleet.get(resource, 0) + amount * change.count
    reserved = {facts["path"]: int(facts.get("kept") or 0)} if facts.get("path") else {}
    empty = facts.get("code") == Code.NEVER_FITS
    return [
        change
        for charge in waiting.charges
        for change in remedies.all_of(remedies.limits_to_raise(quota.ledger, charge, fleet, reserved, empty=empty))
    ]


def _borrowed(waiting: WaitingJob) -> list[Change]:
    """Queues that use more than their min of what is short, each with the jobs of its own that would make room."""
    quota, facts = waiting.quota, waiting.facts
    if quota is None or facts.get("path") not in quota.ledger.row or facts.get("resource") not in quota.ledger.column:
        return []
    path, resource = facts["path"], facts["resource"]
    return [
        _return(waiting, borrower, resource)
        for borrower in remedies.find_borrowers(quota.ledger, path, resource)
        if borrower.path != waiting.job.leaf
    ]


def _return(waiting: WaitingJob, borrower: Borrower, resource: str) -> Change:
    enough = _enough(_charged([borrower.path], resource), resource, _short(waiting)) or ((), 0)
    message = f"{borrower.path} uses {reasons.amount(resource, borrower.amount)} more than its min"
    if waiting.quota is not None and waiting.job.leaf in waiting.quota.ledger.path_rows:
        ledger, claimant = waiting.quota.ledger, admission_pass.unit_of(waiting.gang)
        about = (snapshot.running_jobs(), ledger.tree, borrower.path, resource, waiting.now)
        first_at = partial(snapshot.first_unprotected, *about)
        if claim := describe_claim(ledger, claimant, borrower.path, resource, first_at):
            message = f"{message} ({claim})"
    amounts = {resource: borrower.amount}
    return Change(
        Kind.RETURN_BORROWED, message, path=borrower.path, amounts=amounts, jobs=tuple(enough[0]), count=enough[1]
    )


def _holders(waiting: WaitingJob) -> list[Change]:
    """The jobs charged below the node that said no: of a number of jobs any, of an amount as few as suffice."""
    quota, facts = waiting.quota, waiting.facts
    if quota is None or facts.get("path") not in quota.ledger.row or not facts.get("bound"):
        return []
    path, resource = facts["path"], facts["resource"]
    below = [leaf.path for leaf in quota.ledger.tree.leaves if leaf.path == path or leaf.path.startswith(f"{path}/")]
    enough = _enough(_charged(below, resource), resource, _short(waiting))
    return _ends(*enough) if enough else []


def _short(waiting: WaitingJob) -> int:
    """How much has to come back before the node that said no lets the job start."""
    quota, facts = waiting.quota, waiting.facts
    if quota is None or not facts.get("bound"):
        return 0
    row, column = quota.ledger.row[facts["path"]], quota.ledger.column[facts["resource"]]
    limit, used = int(facts.get(facts["bound"]) or 0), int(quota.ledger.held.used[row, column])
    return used + int(facts.get("kept") or 0) + int(facts["asked"]) - limit


def _charged(leaves: Sequence[str], resource: str) -> list[JobRef]:
    """The jobs charged to these leaves that hold some of the resource, small ones first."""
    rows = snapshot.charged_jobs().filter(leaf__in=leaves).values_list("uid", "namespace", "name", "charge")
    jobs = [
        JobRef(str(uid), f"{space}/{name}", {resource: (charge or {}).get(resource, 0)})
        for uid, space, name, charge in rows
    ]
    return sorted((job for job in jobs if job.amounts[resource]), key=lambda job: (job.amounts[resource], job.name))


def _enough(jobs: Sequence[JobRef], resource: str, short: int) -> tuple[Sequence[JobRef], int] | None:
    """Jobs, and how many of them have to end: any so many of equal ones, or else the fewest that suffice."""
    if short <= 0 or not jobs:
        return None
    if all(job.amounts[resource] == jobs[0].amounts[resource] for job in jobs):
        count = -(-short // jobs[0].amounts[resource])
        return (jobs[: max(_HOLDERS_SHOWN, count)], count) if count <= len(jobs) else None
    alone = next((job for job in jobs if job.amounts[resource] >= short), None)
    return ([alone], 1) if alone else _together(jobs, resource, short)


def _together(jobs: Sequence[JobRef], resource: str, short: int) -> tuple[Sequence[JobRef], int] | None:
    taken: list[JobRef] = []
    for job in reversed(jobs):
        taken.append(job)
        short -= job.amounts[resource]
        if short <= 0:
            return taken, len(taken)
    return None


def _ends(jobs: Sequence[JobRef], count: int) -> list[Change]:
    return [Change(Kind.WAIT_FOR_JOBS, describe_wait([job.name for job in jobs], count), jobs=tuple(jobs), count=count)]


def _blocker(waiting: WaitingJob) -> list[Change]:
    name = str(waiting.facts.get("blocker") or "")
    uid = _uid_of(name)
    if not uid:
        return []
    message = f"see why {name} waits: it holds up the queue"
    return [Change(Kind.LOOK_AT_JOB, message, path=waiting.job.leaf, jobs=(JobRef(uid, name),), count=1)]


def _open_queue(waiting: WaitingJob) -> list[Change]:
    quota = waiting.quota
    closed = quota.closed.get(waiting.job.leaf) if quota else None
    queue = Queue.objects.filter(name=closed.name).first() if closed else None
    if queue is None:
        return []
    return [
        Change(
            Kind.OPEN_QUEUE,
            f"open queue {queue.path}",
            path=queue.path,
            queue=queue.name,
            at=queue.state_at,
            by=queue.state_by,
            comment=queue.state_comment,
        )
    ]


def _make_policy(waiting: WaitingJob) -> list[Change]:
    job = waiting.job
    message = f"make a PropagationPolicy in {job.namespace} that selects {job.kind}"
    return [Change(Kind.MAKE_POLICY, message, manifest=manifests.policy_for(job.namespace, job.api_version, job.kind))]


def _make_tree(waiting: WaitingJob) -> list[Change]:
    tree = manifests.first_tree(waiting.job.namespace, waiting.fleet)
    return [Change(Kind.MAKE_QUOTA_TREE, "make a quota tree with a queue for the job", manifest=tree)]


def _plain(kind: Kind, message: Callable[[Job], str]) -> Callable[[WaitingJob], list[Change]]:
    return lambda waiting: [Change(kind, message(waiting.job), path=waiting.job.leaf)]


def _submit_again(waiting: WaitingJob) -> list[Change]:
    failed = ", ".join(dependencies.failed(waiting.job))
    return [Change(Kind.SUBMIT_AGAIN, f"submit {failed} again, to succeed", comment=failed)] if failed else []


def _raise_budget(waiting: WaitingJob) -> list[Change]:
    facts = waiting.facts
    if "gpu_hours" not in facts:
        return []
    until = datetime.fromisoformat(facts["until"])
    message = f"raise the budget of {facts['path']}, or wait until it is renewed at {until:%F %T} UTC"
    return [Change(Kind.RAISE_BUDGET, message, path=facts["path"], at=until)]


def _change_after(waiting: WaitingJob) -> list[Change]:
    message = f"apply the job without {AFTER}, or with an end that suffices: NAME?any"
    return [Change(Kind.CHANGE_AFTER, message, comment=AFTER)]


def _look_at_cluster(waiting: WaitingJob) -> list[Change]:
    return of_placed(waiting.job)


BUILDERS: Mapping[Kind, Callable[[WaitingJob], list[Change]]] = {
    Kind.MAKE_POLICY: _make_policy,
    Kind.MAKE_QUOTA_TREE: _make_tree,
    Kind.ADD_NAMESPACE: _plain(
        Kind.ADD_NAMESPACE, lambda job: f"list namespace {job.namespace} at a leaf of the quota tree"
    ),
    Kind.RESUME: _plain(Kind.RESUME, lambda job: "resume the job"),
    Kind.JOIN_CLUSTER: _plain(Kind.JOIN_CLUSTER, lambda job: "join a cluster"),
    Kind.OPEN_QUEUE: _open_queue,
    Kind.LOOK_AT_JOB: _blocker,
    Kind.RETURN_BORROWED: _borrowed,
    Kind.WAIT_FOR_JOBS: _holders,
    Kind.RAISE_QUOTA: _raised,
    Kind.LOWER_REQUEST: _lowered,
    Kind.ALL_OF: _all_of,
    Kind.LOOK_AT_CLUSTER: _look_at_cluster,
    Kind.SUBMIT_AGAIN: _submit_again,
    Kind.CHANGE_AFTER: _change_after,
    Kind.RAISE_BUDGET: _raise_budget,
    Kind.END_BEFORE: lambda waiting: remedies.end_before(waiting.facts),
}
