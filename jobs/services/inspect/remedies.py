"""What would let one job start, chosen by the gate it stands at, and what of it one reader may be shown.

The table of `jobs.core.explain.remedies` says which kinds there may be; each is built here from what is in force now.
Only looks. Names of jobs in namespaces that the reader may not see are left out: amounts and counts remain.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from jobs import snapshot
from jobs.core import reasons
from jobs.core.admission.snapshot import Quota
from jobs.core.explain import changes, remedies
from jobs.core.explain.changes import Occupant, ending
from jobs.core.explain.remedies import PLACEMENT, REMEDIES, Change, JobRef, Kind
from jobs.core.gang.requirements import Demand
from jobs.core.gang.types import Gang
from jobs.core.placement.engine import Engine
from jobs.core.placement.explaining import Look
from jobs.core.placement.types import NodeFacts
from jobs.core.reasons import Amounts, Code
from jobs.models import Job
from quotas.core.amounts import of_job
from quotas.core.ledger import Charge
from quotas.models import Queue

Sees = Callable[[str], bool]
"""Whether the reader may see what is in a namespace."""
_HOLDERS_SHOWN = 8


@dataclass
class Standing:
    """A job at its gate, with the fleet as it is now."""

    job: Job
    gang: Gang
    demand: Demand
    engine: Engine
    looks: Sequence[Look]
    now: datetime
    never: bool
    """No cluster could hold it even when empty."""
    occupants: Callable[[str], Sequence[Occupant]]
    nodes: Callable[[str], Sequence[NodeFacts]]
    kept: Mapping[str, tuple[str, datetime]]
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
    def fleet(self) -> Amounts:
        """What all clusters have together, empty."""
        index = self.engine.fleet.states.index
        return {name: int(self.engine.fleet.capacity[:, column].sum()) for name, column in index.items()}


def code_of(job: Job) -> Code:
    if job.suspended:
        return Code.SUSPENDED
    code = (job.reason or {}).get("code", "")
    return Code(code) if code in set(Code) else Code.WAITING_FOR_SCHEDULER


def of(standing: Standing) -> list[Change]:
    """In the order of the table; placement's as `changes.nearest` has them."""
    kinds = REMEDIES[code_of(standing.job)]
    if kinds == PLACEMENT:
        return _placement(standing)
    return [change for kind in kinds for change in BUILDERS[kind](standing)]


def of_placed(job: Job) -> list[Change]:
    """For a job that has its place and does not run there yet."""
    if Kind.LOOK_AT_CLUSTER not in REMEDIES[code_of(job)] or job.cluster is None:
        return []
    name = job.cluster.name
    return [Change(Kind.LOOK_AT_CLUSTER, f"see what is wrong with {name}", name)]


def shown_to(found: Iterable[Change], sees: Sees) -> list[Change]:
    """Without the names of jobs that the reader may not see."""
    return [_shown(change, sees) for change in found]


def _shown(change: Change, sees: Sees) -> Change:
    jobs = tuple(each if sees(each.name.partition("/")[0]) else replace(each, uid="", name="") for each in change.jobs)
    steps = tuple(_shown(step, sees) for step in change.steps)
    if all(each.is_named for each in jobs) and steps == change.steps:
        return change
    if steps:
        return replace(change, steps=steps, message=" and ".join(step.message for step in steps))
    names = [each.name for each in jobs if each.is_named]
    message = ending(names, change.count, len(jobs) - len(names))
    if change.kind is Kind.WAIT_FOR_GANG:
        message = f"wait for a job of another team to start on {change.cluster}"
    elif change.kind is Kind.LOOK_AT_JOB:
        message = "wait for the job of another team that holds up the queue"
    elif change.cluster:
        message += f" on {change.cluster}"
    return replace(change, jobs=jobs, message=message)


def _placement(standing: Standing) -> list[Change]:
    if any(look.code is Code.FITS and look.cluster not in standing.kept for look in standing.looks):
        return []
    if standing.never:
        return [*_enlarged(standing), *_lowered(standing)]
    engine, gang, demand = standing.engine, standing.gang, standing.demand
    found = changes.nearest(engine, gang, demand, standing.now, standing.occupants)
    return [*_kept(standing), *found]


def _kept(standing: Standing) -> list[Change]:
    for look in standing.looks:
        if look.code is Code.KEPT_FOR_GANG and look.cluster in standing.kept:
            name, until = standing.kept[look.cluster]
            message = f"wait for {name} to start on {look.cluster}, expected at {until:%H:%M:%S} UTC"
            return [Change(Kind.WAIT_FOR_GANG, message, look.cluster, jobs=(JobRef("", name),), count=1, at=until)]
    return []


def _enlarged(standing: Standing) -> list[Change]:
    now, nodes = standing.now, standing.nodes
    found = changes.enlarging(standing.engine, standing.gang, standing.demand, now, standing.looks, nodes)
    return [found] if found else []


def _lowered(standing: Standing) -> list[Change]:
    """The smaller of what the quota and the clusters could give."""
    found = changes.largest(standing.engine, standing.demand, standing.looks) if standing.never else None
    limits = dict(found.amounts) if found else {}
    facts = standing.facts
    if facts.get("code") == Code.NEVER_FITS and facts.get("bound") and not (found and found.role):
        resource = facts["resource"]
        most = int(facts.get(facts["bound"]) or 0) - int(facts.get("kept") or 0)
        limits[resource] = min(most, limits.get(resource, most))
    if not limits or min(limits.values()) <= 0:
        return []
    whose = f" for one {found.role} pod" if found and found.role else ""
    message = f"ask for at most {reasons.amounts(limits)}{whose}"
    return [Change(Kind.LOWER_REQUEST, message, role=found.role if found else "", amounts=limits)]


def _all_of(standing: Standing) -> list[Change]:
    """Nodes and limits together, if it takes both; nothing where either cannot be had."""
    nodes = _enlarged(standing) if standing.never else []
    if standing.never and not nodes:
        return []
    return remedies.all_of([*_raised(standing, nodes), *nodes])


def _raised(standing: Standing, nodes: Sequence[Change] = ()) -> list[Change]:
    quota, facts = standing.quota, standing.facts
    if quota is None or standing.job.leaf not in quota.ledger.way:
        return []
    fleet = dict(standing.fleet)
    for change in nodes:
        for resource, amount in change.amounts.items():
            fleet[resource] = fleet.get(resource, 0) + amount * change.count
    kept = {facts["path"]: int(facts.get("kept") or 0)} if facts.get("path") else {}
    empty = facts.get("code") == Code.NEVER_FITS
    return remedies.raises(quota.ledger, standing.charge, fleet, kept, empty=empty)


def _raise_quota(standing: Standing) -> list[Change]:
    return remedies.all_of(_raised(standing))


def _borrowed(standing: Standing) -> list[Change]:
    """Who uses more than it is promised, of what the job's own side is promised."""
    quota, facts = standing.quota, standing.facts
    if quota is None or facts.get("path") not in quota.ledger.row or facts.get("resource") not in quota.ledger.column:
        return []
    path, resource = facts["path"], facts["resource"]
    found = remedies.borrowers(quota.ledger, path, resource)
    return [
        Change(
            Kind.RETURN_BORROWED,
            f"{each.path} uses {reasons.amount(resource, each.amount)} more than its min",
            path=each.path,
            amounts={resource: each.amount},
        )
        for each in found
        if each.path != standing.job.leaf
    ]


def _holders(standing: Standing) -> list[Change]:
    """The jobs charged below the node that said no: of a number of jobs any, of an amount as few as suffice."""
    quota, facts = standing.quota, standing.facts
    if quota is None or facts.get("path") not in quota.ledger.row or not facts.get("bound"):
        return []
    path, resource = facts["path"], facts["resource"]
    limit, asked = int(facts.get(facts["bound"]) or 0), int(facts["asked"])
    row, column = quota.ledger.row[path], quota.ledger.column[resource]
    short = int(quota.ledger.held.used[row, column]) + int(facts.get("kept") or 0) + asked - limit
    below = [leaf.path for leaf in quota.ledger.tree.leaves if leaf.path == path or leaf.path.startswith(f"{path}/")]
    rows = snapshot.charged_jobs().filter(leaf__in=below).values_list("uid", "namespace", "name", "charge")
    held = [
        JobRef(str(uid), f"{space}/{name}", {resource: (charge or {}).get(resource, 0)})
        for uid, space, name, charge in rows
    ]
    jobs = sorted(
        (each for each in held if each.amounts[resource]), key=lambda each: (each.amounts[resource], each.name)
    )
    if short <= 0 or not jobs:
        return []
    if all(each.amounts[resource] == jobs[0].amounts[resource] for each in jobs):
        count = -(-short // jobs[0].amounts[resource])
        return _ends(jobs[: max(_HOLDERS_SHOWN, count)], count) if count <= len(jobs) else []
    alone = next((each for each in jobs if each.amounts[resource] >= short), None)
    return _ends([alone], 1) if alone else _together(jobs, resource, short)


def _together(jobs: Sequence[JobRef], resource: str, short: int) -> list[Change]:
    taken: list[JobRef] = []
    for each in reversed(jobs):
        taken.append(each)
        short -= each.amounts[resource]
        if short <= 0:
            return _ends(taken, len(taken))
    return []


def _ends(jobs: Sequence[JobRef], count: int) -> list[Change]:
    return [Change(Kind.WAIT_FOR_JOBS, ending([each.name for each in jobs], count), jobs=tuple(jobs), count=count)]


def _blocker(standing: Standing) -> list[Change]:
    name = str(standing.facts.get("blocker") or "")
    namespace, _, short = name.partition("/")
    row = Job.objects.filter(namespace=namespace, name=short).values_list("uid", flat=True).first()
    if row is None:
        return []
    message = f"see why {name} waits: it holds up the queue"
    return [Change(Kind.LOOK_AT_JOB, message, path=standing.job.leaf, jobs=(JobRef(str(row), name),), count=1)]


def _open_queue(standing: Standing) -> list[Change]:
    quota = standing.quota
    closed = quota.closed.get(standing.job.leaf) if quota else None
    queue = Queue.objects.filter(name=closed.name).first() if closed else None
    if queue is None:
        return []
    message = f"open queue {queue.path}"
    return [
        Change(
            Kind.OPEN_QUEUE,
            message,
            path=queue.path,
            queue=queue.name,
            at=queue.state_at,
            by=queue.state_by,
            comment=queue.state_comment,
        )
    ]


def _plain(kind: Kind, message: Callable[[Job], str]) -> Callable[[Standing], list[Change]]:
    return lambda standing: [Change(kind, message(standing.job), path=standing.job.leaf)]


def _look_at_cluster(standing: Standing) -> list[Change]:
    return of_placed(standing.job)


BUILDERS: Mapping[Kind, Callable[[Standing], list[Change]]] = {
    Kind.MAKE_POLICY: _plain(
        Kind.MAKE_POLICY, lambda job: f"make a PropagationPolicy in {job.namespace} that selects {job.kind}"
    ),
    Kind.MAKE_QUOTA_TREE: _plain(Kind.MAKE_QUOTA_TREE, lambda job: "make a quota tree with a queue for the job"),
    Kind.ADD_NAMESPACE: _plain(
        Kind.ADD_NAMESPACE, lambda job: f"list namespace {job.namespace} at a leaf of the quota tree"
    ),
    Kind.RESUME: _plain(Kind.RESUME, lambda job: "resume the job"),
    Kind.JOIN_CLUSTER: _plain(Kind.JOIN_CLUSTER, lambda job: "join a cluster"),
    Kind.OPEN_QUEUE: _open_queue,
    Kind.LOOK_AT_JOB: _blocker,
    Kind.RETURN_BORROWED: _borrowed,
    Kind.WAIT_FOR_JOBS: _holders,
    Kind.RAISE_QUOTA: _raise_quota,
    Kind.LOWER_REQUEST: _lowered,
    Kind.ALL_OF: _all_of,
    Kind.LOOK_AT_CLUSTER: _look_at_cluster,
}
