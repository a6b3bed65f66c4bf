"""What would start, wait or move if the fleet were another: the scheduler's own cycle on a changed snapshot.

Nothing is touched: the snapshot is loaded, changed in memory and planned for twice, as it is and as it would be. Manifests of
jobs are applied in a transaction that is rolled back, so that they are refused as `submit.apply` refuses them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from fleet.changes import dry_runs
from fleet.core import units
from fleet.errors import InvalidInput, NotFound, invalid
from fleet.kube.quantities import QuantityError
from fleet.models import Node
from jobs import snapshot
from jobs.core.admission.snapshot import Snapshot
from jobs.core.gang.types import Gang
from jobs.core.reasons import Reason
from jobs.core.scheduling import cycle, what_if
from jobs.core.scheduling.cycle import Plan
from jobs.models import Job
from jobs.services.inspect import departures
from jobs.services.inspect.departures import Departures
from jobs.services.scheduling import runtimes
from jobs.services.scheduling.plan_failures import guard
from jobs.services.submission import submit
from quotas.core.trees import parsing
from quotas.models import QuotaTree
from quotas.services import edits

MOST_NODES = 10_000


@dataclass(frozen=True, slots=True)
class NewNodes:
    cluster: str
    count: int
    allocatable: Mapping[str, Any] | None = None
    """None: like most nodes that the cluster has."""


@dataclass(frozen=True, slots=True)
class OneNode:
    cluster: str
    node: str


@dataclass(frozen=True, slots=True)
class NewQuota:
    path: str
    min: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suppose:
    """All of it at once."""

    add_jobs: Sequence[Mapping[str, Any]] = ()
    lose_cluster: str = ""
    """It does not answer any more."""
    drain_cluster: str = ""
    drain_node: OneNode | None = None
    raise_quota: NewQuota | None = None
    add_nodes: NewNodes | None = None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What becomes of a job in one of the two cases: it Runs or Starts on a cluster, Waits for a reason, or is New."""

    outcome: str
    cluster: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    uid: str
    """Empty for a hypothetical job."""
    kind: str
    namespace: str
    name: str
    before: JobOutcome
    after: JobOutcome


@dataclass(frozen=True, slots=True)
class Answer:
    differences: list[Difference]
    starts_before: int
    starts_after: int
    waits_before: int
    waits_after: int
    hidden_leaving: int = 0
    """Jobs that would leave where they run and are not among the differences, since they are not shown to everyone."""

    def shown_to(self, sees: Callable[[str], bool]) -> "Answer":
        """With the differences of the namespaces that are seen."""
        shown = [each for each in self.differences if sees(each.namespace)]
        hidden = [each for each in self.differences if not sees(each.namespace)]
        return replace(self, differences=shown, hidden_leaving=sum(each.before.outcome == "Runs" for each in hidden))


def simulate_change(suppose: Suppose, *, by: str, now: datetime) -> Answer:
    """Every job whose outcome the change alters; hypothetical jobs always."""
    world = snapshot.load(now)
    hypothetical = _hypothetical_jobs(suppose.add_jobs, by, now)
    affected = _departures(suppose)
    changed = _changed(world, suppose, affected)
    gone = [*affected.leaving.values(), *(gang for gang, _ in hypothetical)]
    changed = what_if.with_waiting(changed, gone)
    runs = partial(runtimes.load, now)
    before = _outcomes_by_job(cycle.run_cycle(world, now, runs, guard))
    after = _outcomes_by_job(cycle.run_cycle(changed, now, runs, guard))
    waiting = set(before)
    cluster = (
        suppose.lose_cluster or suppose.drain_cluster or (suppose.drain_node.cluster if suppose.drain_node else "")
    )
    before |= {pk: JobOutcome("Runs", cluster) for pk in (*affected.leaving, *affected.staying)}
    after |= {pk: JobOutcome("Waits", cluster, reason) for pk, reason in affected.staying.items()}
    differences = [
        Difference(
            "", job.kind, job.namespace, job.name, JobOutcome("New"), after.get(gang.job_id, JobOutcome("Waits"))
        )
        for gang, job in hypothetical
    ]
    differences += _compared(before, after)
    return Answer(
        differences,
        starts_before=sum(before[pk].outcome == "Starts" for pk in waiting),
        starts_after=sum(outcome.outcome == "Starts" for outcome in after.values()),
        waits_before=sum(before[pk].outcome == "Waits" for pk in waiting),
        waits_after=sum(outcome.outcome == "Waits" for outcome in after.values()),
    )


def _outcomes_by_job(plan: Plan) -> dict[int, JobOutcome]:
    outcomes = {each.gang.job_id: JobOutcome("Starts", each.placement.where) for each in plan.placed}
    return outcomes | {each.gang.job_id: JobOutcome("Waits", "", each.reason) for each in plan.waits}


def _compared(before: Mapping[int, JobOutcome], after: Mapping[int, JobOutcome]) -> list[Difference]:
    def essence(outcome: JobOutcome) -> object:
        return outcome.outcome, outcome.cluster, outcome.reason.code if outcome.reason else ""

    other = [pk for pk, outcome in before.items() if essence(outcome) != essence(after.get(pk, outcome))]
    rows = Job.objects.filter(pk__in=other).order_by("-priority", "queued_at", "pk")
    columns = rows.values_list("pk", "uid", "kind", "namespace", "name")
    return [Difference(str(uid), kind, space, name, before[pk], after[pk]) for pk, uid, kind, space, name in columns]


def _hypothetical_jobs(documents: Sequence[Mapping[str, Any]], by: str, now: datetime) -> list[tuple[Gang, Job]]:
    """Jobs that are not there, as the scheduler would see them, numbered below all that are."""
    if not documents:
        return []
    with dry_runs.taken_back():
        uids = [each.uid for each in submit.apply(documents, by=by, now=now) if each.action == "created"]
        rows = {job.pk: job for job in Job.objects.filter(uid__in=uids)}
        gangs = snapshot.load_gangs(snapshot.waiting_jobs().filter(pk__in=rows))
    if not gangs:
        raise invalid("add_job", "must hold at least one job that is not submitted yet and not suspended")
    return [(replace(gang, job_id=-gang.job_id), rows[gang.job_id]) for gang in gangs]


def _departures(suppose: Suppose) -> Departures:
    if suppose.lose_cluster:
        return departures.of_lost(suppose.lose_cluster)
    if suppose.drain_node:
        return departures.of_drained_node(suppose.drain_node.cluster, suppose.drain_node.node)
    return departures.of_drained(suppose.drain_cluster) if suppose.drain_cluster else Departures()


def _changed(world: Snapshot, suppose: Suppose, affected: Departures) -> Snapshot:
    if cluster := suppose.lose_cluster or suppose.drain_cluster:
        world = what_if.without_cluster(world, cluster)
    if drained := suppose.drain_node:
        gone = {gang.uid for gang in affected.leaving.values()}
        world = what_if.without_node(world, drained.cluster, drained.node, affected.freed, gone)
    if suppose.add_nodes:
        world = _with_nodes(world, suppose.add_nodes)
    if suppose.raise_quota:
        world = _with_quota(world, suppose.raise_quota)
    return world


def _with_nodes(world: Snapshot, new: NewNodes) -> Snapshot:
    if new.cluster not in {site.member.name for site in world.sites}:
        raise NotFound(f"there is no cluster {new.cluster}")
    if not 1 <= new.count <= MOST_NODES:
        raise invalid("add_nodes.count", f"must be from 1 to {MOST_NODES}, not {new.count}")
    if new.allocatable is None:
        return what_if.with_nodes(world, new.cluster, new.count, _usual(new.cluster))
    try:
        offered = units.amounts(new.allocatable)
    except QuantityError as e:
        raise invalid("add_nodes.allocatable", str(e)) from e
    return what_if.with_nodes(world, new.cluster, new.count, {"pods": 110, **offered})


def _usual(cluster: str) -> Mapping[str, int]:
    """What most of the cluster's nodes offer."""
    rows = Node.objects.filter(cluster__name=cluster, ready=True, unschedulable=False).order_by("name")
    counted = Counter(tuple(sorted(offered.items())) for offered in rows.values_list("allocatable", flat=True))
    if not counted:
        raise invalid("add_nodes.allocatable", f"is required: {cluster} has no node that others could be like")
    return dict(counted.most_common(1)[0][0])


def _with_quota(world: Snapshot, new: NewQuota) -> Snapshot:
    row = QuotaTree.objects.first()
    if row is None or world.quota is None:
        raise NotFound("there is no quota tree whose quota could be raised")
    limits = {name: dict(amounts) for name, amounts in (("min", new.min), ("max", new.max)) if amounts}
    read = parsing.parse_tree(edits.changed(row.manifest, [{"op": "edit", "path": new.path, "set": limits}]))
    if read.tree is None:
        message = "; ".join(f"{fault.field} {fault.detail}" for fault in read.faults[:5])
        raise InvalidInput(f"raise_quota: {message}", tuple(read.faults))
    return replace(world, quota=replace(world.quota, ledger=snapshot.ledger_of(read.tree)))
