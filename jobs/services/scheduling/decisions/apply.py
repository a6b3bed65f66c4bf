"""Writes a plan down in one transaction that the scheduler lease guards: placements, holds, charges, works, reasons.

The lease row is locked first and stays locked until the commit, so that a plan whose lease was lost writes nothing. Then the
jobs are locked, all at once and by key, and only after them the journal (`jobs.services.lifecycle.locks`). A job that has
changed since it was planned for is left out: its conditional update is the claim.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from fleet.changes import events
from fleet.db import bulk, isolation, prepared
from fleet.db.prepared import KEY
from fleet.models import Cluster, Hold
from fleet.services.clusters import node_exclusions
from jobs import metrics, snapshot, tracing
from jobs.core.admission.plans import Placed, Plan, Waits
from jobs.core.division import shares as parts
from jobs.core.explain import timeline, waited_codes
from jobs.core.gang.flavors import labels_by_role
from jobs.core.gang.types import Gang
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.placement import placed_topology
from jobs.core.preemption.planner import PreemptionPlan
from jobs.core.reasons import AWAITS_JOBS, Code, Reason
from jobs.events import announce_jobs, job_event, record_event
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.failover import shares
from jobs.services.lifecycle import cycle_requests, transitions, works
from jobs.services.scheduling.decisions import excluded_nodes, lease, preemption, rejections
from jobs.services.scheduling.decisions.excluded_nodes import Exclusions
from jobs.services.scheduling.decisions.rejections import Written
from quotas import queries
from quotas.core.trees.budgets import WhenSpent
from quotas.models import Queue, QuotaTree

_MESSAGES = 8
"""Messages for all works that one plan makes, unless they go to more clusters: as many as a worker sends at once."""
_LOCKED = (
    "uid", "created_at", "api_version", "kind", "namespace", "name", "attempt", "generation", "leaf", "gpus", "preemptible",
    "charge", "charged_at", "shares", "state", "suspended", "deleting_at", "reason", "waited", "resource_version", "queued_at",
    "trace", "claimed_at", "waited_codes",
)  # fmt: skip
_EXCLUDES = Exists(node_exclusions.in_force().filter(cluster=OuterRef("pk")).order_by())
_USABLE = prepared.Rows(lambda _: Cluster.objects.filter(cordoned=False, stale_since=None).values_list("pk", _EXCLUDES))
_TREE = prepared.Rows(
    lambda _: QuotaTree.objects.order_by("pk").select_for_update(no_key=True).values_list("resource_version")[:1]
)
_JOBS = prepared.Rows(
    lambda param: (
        Job.objects.filter(pk__in=param("pks", KEY)).order_by("pk").select_for_update(no_key=True).only(*_LOCKED)
    )
)
_CLOSED = prepared.Rows(
    lambda _: (
        queries.queues()
        .filter(~Q(state=Queue.State.OPEN) | Q(spent__isnull=False))
        .values_list("path", "state", "spent")
    )
)
_PLACED = ("state", "cluster", "attempt", "charge", "charged_at", "reason", "status", "reclaim", "unhealthy_since")


def apply_plan(plan: Plan, epoch: int, now: datetime, orders: PreemptionPlan | None = None) -> Written | None:
    """Writes the plan without the gangs that the database rejects. Returns None when the lease was lost."""
    written = rejections.write(partial(_write_plan, epoch, now), plan, orders)
    return _reject(written, epoch, now) if written and written.rejected else written


@transaction.atomic
def _reject(written: Written, epoch: int, now: datetime) -> Written | None:
    if not lease.renew(epoch, now):
        return None
    rejections.record_refused(list(_locked(written.rejected).values()), written.rejected, now)
    cycle_requests.request()
    return written


def leave_out(errors: Mapping[int, str], epoch: int, now: datetime) -> None:
    """Writes into jobs whose gang could not be planned why they are left out. Nothing when the lease was lost."""
    isolation.apart("scheduler.leave_out", sorted(errors), partial(_leave_out, errors, epoch, now))


@transaction.atomic
def _leave_out(errors: Mapping[int, str], epoch: int, now: datetime, pks: Collection[int]) -> None:
    if lease.renew(epoch, now):
        rejections.record_failed(list(_locked(pks).values()), errors, now)
        cycle_requests.request()


@transaction.atomic
def _write_plan(epoch: int, now: datetime, plan: Plan, orders: PreemptionPlan | None) -> Written | None:
    """One guarded transaction; None when the lease was lost and nothing was written."""
    # The lease, the tree and the jobs are locked in this order by every writer, and the journal last: another order deadlocks.
    if not lease.renew(epoch, now):
        return None
    if not is_tree_in_force(plan.tree_version):
        cycle_requests.request()
        return Written()
    usable = _usable_clusters()
    waiting = _lock(plan, orders)
    is_closed = closed_queues()
    retried = [job.uid for job in waiting.values() if job.attempt]
    excluded = excluded_nodes.load(retried) if any(usable.values()) else Exclusions()
    admissible = [
        placed
        for placed in plan.placed
        if _clusters_of(placed) <= usable.keys() and not is_closed(placed.gang) and excluded.allow(placed)
    ]
    ordered = preemption.shrink_targets(orders, now) if orders else preemption.Ordered()
    claimed = _claim(admissible, waiting, now)
    if claimed:
        _write_placed(claimed, excluded, now)
    evictions = preemption.order_evictions(orders, ordered, now) if orders else {}
    claims = _mark_claims(ordered, waiting, now)
    explained = _write_waiting([preemption.waits_for(waits, evictions) for waits in plan.waits], waiting, claims, now)
    whole = [job for job, placed in claimed if placed.gang.division is None]
    return Written({job.pk for job, _ in claimed}, [job.resource_version for job in (*whole, *explained)])


def _clusters_of(placed: Placed) -> set[int]:
    return {share.cluster_id for share in placed.placement.shares}


def is_tree_in_force(tree_version: int) -> bool:
    """Whether the quota tree a plan was made under is still in force; locks it until the transaction ends."""
    return tree_version == next((version for (version,) in _TREE.values()), 0)


def changed_reasons(waits: Sequence[Waits], orders: PreemptionPlan, now: datetime) -> list[Waits]:
    """Waits whose reason code changed, or that preemption updates. A changed amount alone is written only when it is old."""
    preempting = {*orders.awaiting, *(taken.preemptor.job_id for taken in orders.evictions)}
    stale = _stale_before(now)
    pks = [wait.gang.job_id for wait in waits]
    stored = dict(snapshot.waiting_jobs().filter(pk__in=pks).values_list("pk", "reason").order_by()) if waits else {}
    return [
        wait
        for wait in waits
        if wait.gang.job_id in preempting or _differs(wait.reason, stored.get(wait.gang.job_id), stale)
    ]


def _stale_before(now: datetime) -> str:
    """Unchanged reasons older than this get their new amounts: a thousand waiting jobs are not rewritten each cycle."""
    return (now - timedelta(seconds=settings.CONVOY_SCHEDULER.reason_refresh_s)).isoformat()


def differs(fresh: Reason, old: dict[str, Any] | None, now: datetime) -> bool:
    """Whether a stored reason has to be written anew."""
    return _differs(fresh, old, _stale_before(now))


def _differs(fresh: Reason, old: dict[str, Any] | None, stale: str) -> bool:
    if not old or old.get("code") != fresh.code:
        return True
    return old.get("message") != fresh.message and (fresh.code in AWAITS_JOBS or old.get("at", "") <= stale)


def _lock(plan: Plan, orders: PreemptionPlan | None) -> dict[int, Job]:
    """Locks every job of the plan, preemption targets too, at once and by key; returns those that still wait."""
    pks = {placed.gang.job_id for placed in plan.placed} | {wait.gang.job_id for wait in plan.waits}
    evictions = orders.evictions if orders else ()
    return _locked(pks.union(*({taken.target.job_id, taken.preemptor.job_id} for taken in evictions)))


def _locked(pks: Collection[int]) -> dict[int, Job]:
    rows = _JOBS.objects(pks=list(pks))
    return {job.pk: job for job in rows if snapshot.waits(job.state, job.suspended, job.deleting_at)}


def usable_clusters() -> set[int]:
    """Clusters that take new pods, and whose state is known."""
    return set(_usable_clusters())


def _usable_clusters() -> dict[int, bool]:
    """The same, and whether nodes of each are excluded."""
    return {pk: bool(excludes) for pk, excludes in _USABLE.values()}


def closed_queues() -> Callable[[Gang], bool]:
    """A predicate: whether the gang's queue, or one above it, was closed since the plan was made."""
    paths = [
        path
        for path, state, spent in _CLOSED.values()
        if state != Queue.State.OPEN or spent["when"] != WhenSpent.BORROW_NOTHING
    ]

    def is_closed(gang: Gang) -> bool:
        return gang.asks_queue and any(f"{gang.leaf}/".startswith(f"{path}/") for path in paths)

    return is_closed


def _claim(placed: Sequence[Placed], waiting: Mapping[int, Job], now: datetime) -> list[tuple[Job, Placed]]:
    """Jobs unchanged since they were planned for, with their new state, cluster and charge set but not yet saved."""
    pairs = [(waiting[decision.gang.job_id], decision) for decision in placed if decision.gang.job_id in waiting]
    claimed = [(job, decision) for job, decision in pairs if _is_as_planned(job, decision.gang)]
    for job, decision in claimed:
        _set_placed(job, decision, now)
    return claimed


def _is_as_planned(job: Job, gang: Gang) -> bool:
    """Whether the job is as it was planned for, and misses the same if it is divided: a lost share may have returned."""
    if _current(job) != _as_planned(gang):
        return False
    return gang.division is None or snapshot.division_of(job, gang.policy) == gang.division


def _current(job: Job) -> tuple[object, ...]:
    return job.attempt, job.generation, job.leaf, job.preemptible, job.charge is not None


def _as_planned(gang: Gang) -> tuple[object, ...]:
    return gang.attempt, gang.generation, gang.leaf, gang.preemptible, gang.charged


def _set_placed(job: Job, placed: Placed, now: datetime) -> None:
    gang, placement = placed.gang, placed.placement
    transitions.enter(job, JobEvent.PLACED)
    job.cluster_id, job.attempt = placement.cluster_id, gang.attempt + len(placement.shares)
    job.reason = Reason(Code.WAITING_FOR_MEMBER, f"placed on {placement.where}, being sent there").as_json()
    job.status, job.reclaim, job.unhealthy_since = {}, None, None
    if gang.asks_quota:
        job.charge, job.charged_at = dict(gang.charge.amounts), now


def _write_placed(pairs: Sequence[tuple[Job, Placed]], excluded: Exclusions, now: datetime) -> None:
    rows = [
        (job, number, share, p.gang)
        for job, p in pairs
        for number, share in enumerate(p.placement.shares, start=p.gang.attempt + 1)
    ]
    attempts = [
        {
            "job_id": job.pk,
            "number": number,
            "cluster_name": share.cluster,
            "gpus": share.assignment.demand.devices if gang.division else job.gpus,
            "explanation": [verdict.as_json() for verdict in share.verdicts],
            "placed_at": now,
        }
        for job, number, share, gang in rows
    ]
    bulk.store(Attempt, attempts, keyless=True)
    holds = [
        {
            "cluster_id": share.cluster_id,
            "job_uid": job.uid,
            "attempt": number,
            "amounts": dict(share.assignment.demand.total if gang.division else gang.total),
            "nodes": [[amounts, list(names)] for amounts, names in share.hold(None).nodes],
            "pods": share.pods,
            "made_at": now,
        }
        for job, number, share, gang in rows
    ]
    bulk.store(Hold, holds, keyless=True)
    stored = bulk.store(
        Work, [_work(job, number, share.cluster_id, gang, excluded, now) for job, number, share, gang in rows]
    )
    for job, p in pairs:
        shares.settle_placed(job, p, now)
    _write_bindings(pairs, now)
    _record_missed_domains(pairs, now)
    _record_windows(pairs, now)
    _withdraw_former(pairs, now)
    transaction.on_commit(partial(_count_admitted, pairs, now), robust=True)
    message = "Binding has been scheduled successfully. Result: "
    timeline_events = [job_event(job, "ScheduleBindingSucceed", message + p.result) for job, p in pairs]
    announce_jobs([job for job, _ in pairs], now, _PLACED, timeline_events)
    by_cluster: dict[int, list[int]] = defaultdict(list)
    for (_, _, share, _), work in zip(rows, stored, strict=True):
        by_cluster[share.cluster_id].append(work)
    _enqueue_pushes(by_cluster)


def _count_admitted(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    for job, placed in pairs:
        tracing.placed(job, placed.placement.where, now)
    by_leaf: dict[str, list[tuple[Job, Placed]]] = defaultdict(list)
    for pair in pairs:
        by_leaf[pair[0].leaf].append(pair)
    for leaf, placed_there in by_leaf.items():
        metrics.ADMITTED.labels(leaf).inc(len(placed_there))
        first_started = [job for job, placed in placed_there if placed.gang.attempt == 0]
        if first_started:
            histogram = metrics.ADMISSION_WAIT_SECONDS.labels(leaf)
            for job in first_started:
                histogram.observe((now - job.created_at).total_seconds())


def _enqueue_pushes(by_cluster: Mapping[int, Sequence[int]]) -> None:
    """Several works share a message when there are many, but only works of one cluster: another one may be slow to answer."""
    together = -(-sum(map(len, by_cluster.values())) // _MESSAGES)
    for pks in by_cluster.values():
        for start in range(0, len(pks), together):
            events.enqueue("jobs.push", *pks[start : start + together])


def _work(job: Job, attempt: int, cluster_id: int, gang: Gang, excluded: Exclusions, now: datetime) -> dict[str, Any]:
    return {
        **works.new_row(job, attempt, WorkEvent.PLACED, now),
        "cluster_id": cluster_id,
        "node_labels": labels_by_role(gang) or None,
        "avoided_nodes": excluded.hostnames(cluster_id, job.uid),
    }


def _record_missed_domains(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    """Emits `TopologyNotMet` for gangs whose preferred network domain was not honoured."""
    for job, placed in pairs:
        if why := placed_topology.not_met(placed.placement.assignment):
            record_event(job, placed_topology.NOT_MET, why, now, warning=True)


def _record_windows(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    """Emits `WindowAhead` for gangs that may be evicted when a window begins."""
    for job, placed in pairs:
        if (window := placed.before_window) is not None:
            message = (
                f"it states no time by which it ends: from {window.begin:%F %T} UTC on a window of {window.window}"
            )
            message = f"{message} is promised {window.resource} that it uses, and it may be evicted then"
            record_event(job, Code.WINDOW_AHEAD, message, now, warning=True)


def _write_bindings(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    bulk.store(Binding, [_binding(job, p, now) for job, p in pairs if p.gang.attempt == 0], keyless=True)
    Binding.objects.bulk_create(
        [Binding(**_binding(job, p, now)) for job, p in pairs if p.gang.attempt > 0],
        update_conflicts=True,
        unique_fields=["job"],
        update_fields=["cluster", "attempt", "result", "explanation", "placement", "scheduled_at"],
    )


def _binding(job: Job, placed: Placed, now: datetime) -> dict[str, Any]:
    placement = placed.placement
    return {
        "job_id": job.pk,
        "cluster_id": placement.cluster_id,
        "attempt": job.attempt,
        "result": placed.result,
        "explanation": [verdict.explained() for verdict in placement.verdicts],
        "placement": placed_topology.topology_to_store(placement.assignment),
        "scheduled_at": now,
    }


def _withdraw_former(pairs: Sequence[tuple[Job, Placed]], now: datetime) -> None:
    """The replacement is placed: copies that earlier attempts left behind may be removed now (invariant I5)."""
    moved = [job.uid for job, _ in pairs if job.attempt > 1]
    former = Q()
    for job, _ in pairs:
        if job.attempt > 1:
            counting = parts.counting(job.shares, job.attempt)
            former |= Q(job_uid=job.uid, attempt__lt=job.attempt) & ~Q(attempt__in=counting)
    if not moved:
        return
    works.order(Work.objects.filter(former), WorkEvent.SUPERSEDED, now)


def _mark_claims(ordered: preemption.Ordered, waiting: Mapping[int, Job], now: datetime) -> list[Job]:
    """The jobs for which others are stopped so that they may borrow, as not having this right any more; not yet saved."""
    claims = {
        taken.preemptor.job_id for taken in (*ordered.evictions, *ordered.shrinks) if taken.victim.is_for_borrowing
    }
    jobs = [waiting[pk] for pk in sorted(claims & waiting.keys())]
    for job in jobs:
        job.claimed_at = now
    return jobs


def _write_waiting(
    waits: Sequence[Waits], waiting: Mapping[int, Job], claims: Sequence[Job], now: datetime
) -> list[Job]:
    """Returns the jobs of which nothing but the reason was written: the scheduler need not read these again."""
    reasons = {wait.gang.job_id: wait.reason for wait in waits}
    stale = _stale_before(now)
    rows = [waiting[pk] for pk in reasons if pk in waiting]
    changed = [job for job in rows if _differs(reasons[job.pk], job.reason, stale)]
    for job in changed:
        before, job.reason = job.reason, {**reasons[job.pk].as_json(), "at": now.isoformat()}
        job.waited_codes = waited_codes.enter_code(job.waited_codes, before, job.reason, now)
        job.waited = timeline.enter_owner(job.waited, timeline.owner_of(job.reason), now)
    explained = [job for job in changed if job not in claims]
    if explained:
        announce_jobs(explained, now, ["reason", "waited", "waited_codes"])
    if claims:
        announce_jobs(claims, now, ["reason", "waited", "waited_codes", "claimed_at"])
    return explained
