"""The ledger of faulty nodes: which node takes no pods until when, for one job or for everyone, and why.

A fault is reported by the service that saw it, with a key, so that a repeated report counts once. What only a tenant says, such
as a line of a log, is reported for the tenant's own job: a row for everyone needs the member's word or a person's. Leases end
in the sweep (`settle`), which announces each end, so that the scheduler, which follows the journal, needs no clock of its own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from fleet.changes import events, journal
from fleet.core.node_exclusions import (
    ExclusionReason,
    Lease,
    after_clock_step,
    extended,
    length,
    most_excluded,
    most_with_problems,
)
from fleet.db import isolation, prepared
from fleet.db.prepared import TIME, Param
from fleet.errors import Conflict, NotFound, invalid
from fleet.models import Cluster, Node, NodeExclusion
from fleet.services.clusters import clusters

NODE_EXCLUSION = "NodeExclusion"
"""Of the journal: a node is excluded, or is so no longer; the uid is that of the job, or for everyone of the cluster."""
_HOSTNAME = "kubernetes.io/hostname"
APART = timedelta(minutes=10)
"""Faults of a node that lie closer together are one: a node that is lost takes all its jobs with it."""
LONGEST_BY_HAND = timedelta(days=90)
_BATCH = 500
_MOST_JOBS = 20
"""Jobs that are shown of one node, those that it failed last."""


@dataclass(frozen=True, slots=True)
class Fault:
    key: str
    """Names it, so that it counts once however often it is reported."""
    at: datetime
    reason: ExclusionReason
    message: str
    """For everyone who may see the row: of a fault for everyone without the name of a job."""
    evidence: Mapping[str, Any] = field(default_factory=dict)


def in_force() -> QuerySet[NodeExclusion]:
    return NodeExclusion.objects.filter(ended_at__isnull=True)


def for_everyone() -> dict[tuple[int, str], str]:
    """(cluster, node) -> until when and why it takes no pods of anybody."""
    rows = in_force().filter(job_uid__isnull=True).order_by().values_list("cluster_id", "node", "until", "message")
    return {(cluster, node): words(until, message) for cluster, node, until, message in rows}


def draining() -> QuerySet[NodeExclusion]:
    """Those whose nodes the jobs leave, with their clusters."""
    return in_force().filter(job_uid__isnull=True, drains=True).select_related("cluster").order_by("pk")


def for_jobs(uids: Iterable[UUID]) -> dict[UUID, tuple[tuple[str, str, str], ...]]:
    """Job -> (cluster, node, until when and why) of the nodes that are excluded for it alone."""
    wanted = set(uids)
    if not wanted:
        return {}
    rows = in_force().filter(job_uid__in=wanted).order_by("cluster__name", "node")
    avoided: dict[UUID, tuple[tuple[str, str, str], ...]] = {}
    for uid, cluster, node, until, message in rows.values_list("job_uid", "cluster__name", "node", "until", "message"):
        if uid is not None:
            avoided[uid] = (*avoided.get(uid, ()), (cluster, node, words(until, message)))
    return avoided


def of_nodes(nodes: Iterable[Node]) -> dict[tuple[int, str], NodeExclusion]:
    """(cluster, node) -> the exclusion for everyone that is in force, of these nodes."""
    known = list(nodes)
    if not known:
        return {}
    rows = in_force().filter(job_uid__isnull=True, cluster__in={node.cluster_id for node in known}).order_by()
    if len(known) == 1:
        rows = rows.filter(node=known[0].name)
    return {(row.cluster_id, row.node): row for row in rows}


def of_jobs_on(nodes: Iterable[Node], sees: Callable[[str], bool]) -> dict[tuple[int, str], list[NodeExclusion]]:
    """(cluster, node) -> the exclusions for single jobs that are in force, of jobs in namespaces that the caller sees."""
    names = defaultdict(set)
    for node in nodes:
        names[node.cluster_id].add(node.name)
    rows = in_force().filter(job_uid__isnull=False, cluster__in=names).order_by("-fault_at")
    rows = rows.filter(node__in=set().union(*names.values()))
    shown: dict[tuple[int, str], list[NodeExclusion]] = defaultdict(list)
    for row in rows:
        place = row.cluster_id, row.node
        if len(shown[place]) < _MOST_JOBS and sees(row.job.partition("/")[0]):
            shown[place].append(row)
    return shown


def words(until: datetime, message: str) -> str:
    return f"until {until:%Y-%m-%d %H:%M} UTC: {message}"


@transaction.atomic
def report(cluster: Cluster, node: str, fault: Fault, now: datetime, job_uid: UUID | None = None) -> bool:
    """Counts a fault, and excludes the node for the job or, without one, for everyone. Returns whether anything has changed."""
    row, is_new = _locked_or_added(cluster, node, fault, now, job_uid)
    if is_new:
        _excluded(row, cluster, now)
        return True
    if _is_counted(row, fault):
        return False
    if row.ended_at is None and fault.at - row.fault_at < APART and not _lease(row).is_over(now):
        return False
    _extend(row, fault, now)
    if row.ended_at is not None or row.reason != ExclusionReason.OPERATOR:
        row.reason, row.message = fault.reason, fault.message[:300]
    if row.ended_at is not None and not _is_allowed(row, now):
        row.ended_at, row.by, row.drains = None, "", False
    row.save()
    _excluded(row, cluster, now)
    return True


@transaction.atomic
def count(cluster: Cluster, node: str, fault: Fault, now: datetime) -> bool:
    """Counts a fault that the member has shown; repeated ones exclude the node for everyone. Returns whether it now is."""
    limits = settings.CONVOY_NODE_EXCLUSIONS
    row, is_new = _locked_or_added(cluster, node, fault, now, None, ended_at=now)
    if is_new or _is_counted(row, fault) or fault.at - row.fault_at < APART:
        return False
    was_in_force = row.ended_at is None
    _extend(row, fault, now)
    is_excused = row.faults < limits.faults_for_everyone or _is_allowed(row, now) or _are_too_many(cluster)
    if not was_in_force and is_excused:
        row.save()
        return False
    if not was_in_force or row.reason == ExclusionReason.REPEATED_FAULTS:
        hours = limits.memory_s / 3600
        row.reason, row.by, row.ended_at, row.drains = ExclusionReason.REPEATED_FAULTS, "", None, False
        row.message = f"failed {row.faults} times within {hours:g} h"
    row.save()
    _excluded(row, cluster, now)
    return True


@transaction.atomic
def exclude(
    cluster: Cluster, node: str, why: str, until: datetime, *, by: str, now: datetime, drains: bool = False
) -> NodeExclusion:
    """A person excludes the node for everyone. With ``drains``, the jobs that have pods there leave it.

    A node that drains goes on doing so, as long and for what was said then, when it is excluded once more without it.
    """
    if not now < until <= now + LONGEST_BY_HAND:
        raise invalid("until", f"must be in the future, and at most {LONGEST_BY_HAND.days} days away")
    labels_of(cluster, node)
    fault = Fault(f"by {by} {now.isoformat()}", now, ExclusionReason.OPERATOR, _message(why, by, drains))
    row, is_new = _locked_or_added(cluster, node, fault, now, None)
    if is_new:
        row.faults, row.fault_at = 0, now - APART  # maintenance is no fault, and hides none
    drains_on = row.drains and row.ended_at is None and not drains
    if drains_on:
        until = max(until, row.until)
    else:
        row.reason, row.message, row.by = fault.reason, fault.message[:300], by
    row.evidence = row.evidence if is_new else _evidence(row.evidence, fault)
    row.drains = drains or drains_on
    row.since, row.until, row.ended_at, row.allowed_until = now, until, None, None
    row.save()
    _excluded(row, cluster, now)
    return row


@transaction.atomic
def lift(exclusion: NodeExclusion, *, by: str, now: datetime) -> NodeExclusion:
    """A person lets the node take pods again. Faults do not exclude it again for as long as a lease may last."""
    row = NodeExclusion.objects.select_for_update(no_key=True).select_related("cluster").filter(pk=exclusion.pk).first()
    if row is None:
        raise NotFound(f"the exclusion of {exclusion.node} has ended and was forgotten")
    if row.ended_at is not None:
        return row
    row.allowed_until = now + timedelta(seconds=settings.CONVOY_NODE_EXCLUSIONS.longest_lease_s)
    row.by = by
    _end(row, f"{by} lifted the exclusion of node {row.node}", now)
    return row


def cordon(cluster: Cluster, node: str, why: str, *, by: str, now: datetime) -> NodeExclusion:
    """A person has the node take no new pods until it is included again. Jobs that have pods there run on.

    A node that drains would not let them: that is refused.
    """
    if draining().filter(cluster=cluster, node=node).exists():
        raise Conflict(f"node {node} of {cluster.name} is drained, so its jobs leave it: uncordon it first")
    return exclude(cluster, node, why, now + LONGEST_BY_HAND, by=by, now=now)


def drain(cluster: Cluster, node: str, why: str, *, by: str, now: datetime) -> NodeExclusion:
    """A person has all jobs leave the node, which takes no new pods, until it is included again."""
    return exclude(cluster, node, why, now + LONGEST_BY_HAND, by=by, now=now, drains=True)


def include(cluster: Cluster, node: str, *, by: str, now: datetime) -> None:
    """A person lets the node take pods of everyone again. Nothing is done for a node that is not excluded.

    One that is gone takes them when it comes back under its name.
    """
    excluded = list(in_force().filter(cluster=cluster, node=node, job_uid__isnull=True))
    if not excluded:
        labels_of(cluster, node)
    for row in excluded:
        lift(row, by=by, now=now)


def labels_of(cluster: Cluster, node: str) -> dict[str, str]:
    """The labels of the node as last reported; raises `NotFound` where the cluster has no such node."""
    labels = Node.objects.filter(cluster=cluster, name=node).values_list("labels", flat=True).first()
    if labels is None:
        raise NotFound(f"cluster {cluster.name} has no node {node}")
    return dict(labels)


def settle(now: datetime) -> None:
    """Excludes nodes that say they are faulty, ends leases that are over, and forgets what was long ago.

    A lease that a wrong clock began is set right.
    """
    believed = _believed()
    _exclude_with_problems(believed, now)
    settle_one = partial(_settle, believed=believed, now=now)
    isolation.each("node_exclusions.settle", _DUE.objects(now=now), settle_one, now)
    old = now - timedelta(seconds=settings.CONVOY_NODE_EXCLUSIONS.memory_s)
    if _ANY_LONG_AGO.values(now=now, old=old):
        _long_ago(now, old).delete()


def _due(param: Param) -> QuerySet[NodeExclusion]:
    step = Q(until__lte=param("now", TIME)) | Q(since__gt=param("now", TIME))
    return in_force().filter(step).select_related("cluster").order_by("until")[:_BATCH]


def _long_ago(now: Any, old: Any) -> QuerySet[NodeExclusion]:
    ended = NodeExclusion.objects.filter(ended_at__lt=old, fault_at__lt=old)
    return ended.filter(Q(allowed_until=None) | Q(allowed_until__lt=now))


_DUE = prepared.Rows(_due)
_ANY_LONG_AGO = prepared.Rows(
    lambda param: _long_ago(param("now", TIME), param("old", TIME)).order_by().values_list("pk")[:1]
)


def _believed() -> set[int]:
    """The clusters whose nodes are believed when they say that they are faulty: most of the others say no such thing."""
    if not (clusters_of := {cluster for (cluster,) in _FAULTY.values()}):
        return set()
    counted = Node.objects.filter(cluster__in=clusters_of).order_by().values_list("cluster")
    counts = counted.annotate(Count("pk"), with_problem=Count("pk", filter=~Q(problem="")))
    return {pk for pk, nodes, with_problem in counts if with_problem <= most_with_problems(nodes)}


_FAULTY = prepared.Rows(lambda _: Node.objects.exclude(problem="").order_by().values_list("cluster").distinct())


def _exclude_with_problems(believed: set[int], now: datetime) -> None:
    """For everyone, unless a person lets the node take pods."""
    if not believed:
        return
    same = NodeExclusion.objects.filter(cluster=OuterRef("cluster"), node=OuterRef("name"), job_uid=None)
    known = same.filter(Q(ended_at=None) | Q(allowed_until__gt=now)).order_by()
    faulty = Node.objects.exclude(problem="").filter(~Exists(known), cluster__in=believed)
    nodes = faulty.select_related("cluster").order_by("pk")[:_BATCH]
    isolation.each("node_exclusions.problems", list(nodes), partial(_exclude_for_problem, now=now), now)


def _exclude_for_problem(node: Node, now: datetime) -> None:
    key = f"{node.problem[:150]} {now.isoformat()}"
    report(node.cluster, node.name, Fault(key, now, ExclusionReason.NODE_PROBLEM, node.problem), now)


def unordered() -> list[NodeExclusion]:
    """Exclusions that began or ended and that no copy was ordered to follow yet."""
    return _UNORDERED.objects()


_UNORDERED = prepared.Rows(lambda _: NodeExclusion.objects.filter(is_ordered=False).order_by("pk")[:_BATCH])


def mark_ordered(exclusion: NodeExclusion) -> None:
    """Unless it has ended, or has begun again, since it was read: then copies have to be ordered once more."""
    same = NodeExclusion.objects.filter(pk=exclusion.pk, ended_at=exclusion.ended_at, hostname=exclusion.hostname)
    same.update(is_ordered=True)


def exist() -> bool:
    """Whether some lease will end by the clock."""
    return bool(_ANY_IN_FORCE.values())


_ANY_IN_FORCE = prepared.Rows(lambda _: in_force().order_by().values_list("pk")[:1])


@transaction.atomic
def _settle(exclusion: NodeExclusion, believed: set[int], now: datetime) -> None:
    rows = in_force().select_for_update(no_key=True, of=("self",)).select_related("cluster")
    row = rows.filter(pk=exclusion.pk).first()
    if row is None:
        return
    lease = after_clock_step(_lease(row), now)
    if lease != _lease(row):
        row.since, row.until, row.fault_at = lease.since, lease.until, lease.fault_at
    if lease.is_over(now) and row.cluster_id in believed and _still_has_problem(row):
        row.until = now + length(row.faults, settings.CONVOY_NODE_EXCLUSIONS)
    elif lease.is_over(now):
        _end(row, f"node {row.node} takes pods again", now)
        return
    row.save(update_fields=["since", "until", "fault_at"])
    _announce(row, now)


def _still_has_problem(row: NodeExclusion) -> bool:
    """Whether the node goes on saying what it is excluded for."""
    if row.reason != ExclusionReason.NODE_PROBLEM:
        return False
    return Node.objects.filter(cluster=row.cluster_id, name=row.node).exclude(problem="").exists()


def _end(row: NodeExclusion, message: str, now: datetime) -> None:
    row.ended_at, row.drains = now, False
    row.save(update_fields=["ended_at", "drains", "allowed_until", "by", "since", "until", "fault_at"])
    _announce(row, now)
    if row.job_uid is None:
        events.record(clusters.change(row.cluster), "NodeIncluded", message, now)
    clusters.freed(row.cluster_id)


def _locked_or_added(
    cluster: Cluster, node: str, fault: Fault, now: datetime, job_uid: UUID | None, ended_at: datetime | None = None
) -> tuple[NodeExclusion, bool]:
    """The locked row of the node, and whether it is new. Two processes may report the first fault at once: one inserts it."""
    rows = NodeExclusion.objects.select_for_update(no_key=True).filter(cluster=cluster, node=node, job_uid=job_uid)
    if (row := rows.order_by().first()) is not None:
        return row, False
    try:
        with transaction.atomic():
            row = _new(cluster, node, fault, now, job_uid)
            row.ended_at = ended_at
            row.save(force_insert=True)
            return row, True
    except IntegrityError:
        return rows.order_by().get(), False


def _new(cluster: Cluster, node: str, fault: Fault, now: datetime, job_uid: UUID | None) -> NodeExclusion:
    lease = extended(None, fault.at, now, settings.CONVOY_NODE_EXCLUSIONS)
    labels = Node.objects.filter(cluster=cluster, name=node).values_list("labels", flat=True).first() or {}
    return NodeExclusion(
        cluster=cluster,
        node=node,
        hostname=str(labels.get(_HOSTNAME, node))[:253],
        job_uid=job_uid,
        reason=fault.reason,
        message=fault.message[:300],
        evidence=_evidence([], fault),
        since=lease.since,
        until=lease.until,
        faults=lease.faults,
        fault_at=lease.fault_at,
    )


def _is_counted(row: NodeExclusion, fault: Fault) -> bool:
    return fault.at <= row.fault_at or fault.key[:200] in {entry["key"] for entry in row.evidence}


def _extend(row: NodeExclusion, fault: Fault, now: datetime) -> None:
    lease = extended(_lease(row), fault.at, now, settings.CONVOY_NODE_EXCLUSIONS)
    row.since, row.until, row.faults, row.fault_at = lease.since, lease.until, lease.faults, lease.fault_at
    row.evidence = _evidence(row.evidence, fault)


def _is_allowed(row: NodeExclusion, now: datetime) -> bool:
    """Whether a person lets it take pods whatever faults are reported."""
    return row.allowed_until is not None and row.allowed_until > now


def _lease(row: NodeExclusion) -> Lease:
    return Lease(row.since, row.until, row.faults, row.fault_at)


def _evidence(known: Iterable[Any], fault: Fault) -> list[Any]:
    entry = {"key": fault.key[:200], "at": fault.at.isoformat(), "reason": fault.reason.value, **fault.evidence}
    return [*known, entry][-NodeExclusion.EVIDENCE :]


def _are_too_many(cluster: Cluster) -> bool:
    """Whether so many nodes are excluded for repeated faults that the fault is hardly theirs."""
    repeated = in_force().filter(cluster=cluster, job_uid=None, reason=ExclusionReason.REPEATED_FAULTS).count()
    nodes = Node.objects.filter(cluster=cluster).count()
    return repeated >= most_excluded(nodes, settings.CONVOY_NODE_EXCLUSIONS)


def _message(why: str, by: str, drains: bool) -> str:
    return f"{'drained' if drains else 'excluded'} by {by}" + (f": {' '.join(why.split())}" if why.strip() else "")


def _excluded(row: NodeExclusion, cluster: Cluster, now: datetime) -> None:
    if row.ended_at is not None:
        return
    row.cluster = cluster
    _announce(row, now)
    if row.job_uid is None:
        message = f"node {row.node} takes no pods {words(row.until, row.message)}"
        events.record(clusters.change(cluster), "NodeExcluded", message, now, warning=True)


def _announce(row: NodeExclusion, now: datetime) -> None:
    """For the scheduler, which reads the ledger again, for copies that run, and for watches of nodes, which show it."""
    NodeExclusion.objects.filter(pk=row.pk).update(is_ordered=False)
    name, modified = row.cluster.name, journal.Action.MODIFIED
    changes = [journal.Change(NODE_EXCLUSION, name, row.node, str(row.job_uid or row.cluster.uid), modified)]
    if row.job_uid is None:
        changes.append(journal.Change("Node", name, row.node, str(row.cluster.uid), modified))
    events.announce(changes, now)
