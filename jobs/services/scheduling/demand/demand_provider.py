"""What `quotas` reads of demand without importing it: charges, waiting jobs, and the leaf of each job under any tree."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from jobs import snapshot
from jobs.core.gang import stored_amounts
from jobs.core.gang.entitlement import find_leaf
from jobs.core.gang.flavors import options_of
from jobs.core.preemption import cost
from jobs.core.preemption.cost import Loss
from jobs.models import Job
from jobs.services.lifecycle.accounting import flavor_charges
from jobs.services.scheduling.demand import budgets, use
from jobs.snapshot_rows import charge_of
from quotas.core.accounts.ledger import Charge
from quotas.core.queues.order import Unit
from quotas.core.reclaiming.candidates import Running, protected_until
from quotas.core.trees import amounts
from quotas.core.trees.flavors import GPU
from quotas.core.trees.tree import Tree
from quotas.services import impact, usage

_COLUMNS = (
    "pk", "kind", "namespace", "name", "labels", "leaf", "pinned", "charge", "total", "preemptible", "priority", "queued_at",
    "started_at", "charged_at", "claimed_at",
)  # fmt: skip
_SAYS = (
    "pk", "kind", "manifest__spec__elasticPolicy", "manifest__spec__etReplicaSpecs", "manifest__metadata__annotations",
    "status__conditions",
)  # fmt: skip
"""Columns from which the cost of stopping a job is computed, without the rest of its manifest."""


def register() -> None:
    usage.register_charges(_admitted, _waiting, _outside)
    usage.register_use(use.so_far)
    usage.register_budgets(budgets.accounts)
    impact.register_population(read_demand)


def load_demand(tree: Tree, now: datetime) -> impact.Population:
    """Running and waiting jobs with their leaf in the tree; jobs without a leaf are left out: no quota limits them."""
    return read_demand(now)(tree)


def read_demand(now: datetime) -> impact.Demand:
    """Reads running and waiting jobs once, for any number of trees."""
    charged = snapshot.charged_jobs()
    lost, running, waiting = losses_of(charged), list(charged.values(*_COLUMNS)), list(_uncharged().values(*_COLUMNS))

    def under(tree: Tree) -> impact.Population:
        choices = _Choices(tree, [*running, *waiting])
        ran = [
            replace(_running(job, charge, lost.get(job["pk"], Loss()), tree, now), choices=choices.of(job, charge))
            for job, charge in _charged(choices.recharged(running), tree)
        ]
        return ran, [_unit(job, charge, choices.of(job, charge)) for job, charge in _charged(waiting, tree)]

    return under


class _Choices:
    """What jobs may be charged by flavor under one tree. Nothing is read for a tree without flavors."""

    def __init__(self, tree: Tree, jobs: Iterable[Mapping[str, Any]]) -> None:
        self._tree = tree
        asking = [job["pk"] for job in jobs if tree.flavors and job["total"].get(GPU)]
        self._gangs = {gang.job_id: gang for gang in snapshot.load_gangs(Job.objects.filter(pk__in=asking))}

    def of(self, job: Mapping[str, Any], charge: Charge) -> tuple[Charge, ...]:
        if (gang := self._gangs.get(job["pk"])) is None:
            return ()
        anew = replace(gang.of_no_flavor(), leaf=charge.leaf)
        return tuple(option.of(anew).charge for option in options_of(self._tree, charge.leaf, anew))

    def recharged(self, running: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The running jobs, charged by the flavors of this tree where the one in force has others."""
        tree, _ = snapshot.tree_in_force()
        flavors = tree.flavors if tree else {}
        jobs = list(running)
        if flavors == self._tree.flavors:
            return jobs
        used = flavor_charges.by_nodes(list(self._gangs), self._tree.flavors)
        charges = {job["pk"]: job["charge"] or amounts.of_job(job["total"]) for job in jobs}
        return [
            {**job, "charge": flavor_charges.recharged(charges[job["pk"]], used.get(job["pk"], {}))} for job in jobs
        ]


def _unit(job: Mapping[str, Any], charge: Charge, choices: tuple[Charge, ...]) -> Unit:
    name = f"{job['namespace']}/{job['name']}"
    first = choices[0] if choices else charge
    has_claimed = job["claimed_at"] is not None
    return Unit(_key(job), name, first, job["priority"], job["queued_at"], has_claimed=has_claimed, choices=choices)


def load_evictable(tree: Tree, now: datetime) -> list[Running]:
    """Running jobs of leaves of the tree, by primary key as text."""
    rows = snapshot.running_jobs().filter(state__in=Job.ON_MEMBER)
    lost, leaves = losses_of(rows), {leaf.path for leaf in tree.leaves}
    return [
        replace(_running(job, _charge_of(job, job["leaf"]), lost[job["pk"]], tree, now), key=str(job["pk"]))
        for job in rows.values(*_COLUMNS)
        if job["leaf"] in leaves and job["pk"] in lost
    ]


def losses_of(rows: QuerySet[Job]) -> dict[int, Loss]:
    """What stopping each of them would cost, by primary key."""
    return {pk: _loss(kind, *columns) for pk, kind, *columns in rows.values_list(*_SAYS)}


def _loss(kind: str, policy: Any, replicas: Any, annotations: Any, conditions: Any) -> Loss:
    return cost.eviction_loss(
        kind, {"elasticPolicy": policy, "etReplicaSpecs": replicas}, annotations or {}, conditions
    )


def _running(job: dict[str, Any], charge: Charge, loss: Loss, tree: Tree, now: datetime) -> Running:
    started = job["started_at"] or job["queued_at"]
    lost_s = loss.seconds(job["started_at"] or now, now)
    until = protected_until(tree, charge.leaf, snapshot.admitted_at(job), now)
    kinds = loss.elastic, loss.checkpointed
    return Running(_key(job), charge, job["priority"], started, *kinds, lost_s=lost_s, protected_until=until)


def _charged(jobs: Iterable[dict[str, Any]], tree: Tree) -> Iterator[tuple[dict[str, Any], Charge]]:
    for job in jobs:
        leaf = find_leaf(tree, job["namespace"], job["labels"], pinned=job["leaf"] if job["pinned"] else "").leaf
        if leaf:
            yield job, _charge_of(job, leaf)


def _charge_of(job: Mapping[str, Any], leaf: str) -> Charge:
    if job["charge"]:
        return charge_of(job["pk"], leaf, job["charge"], job["preemptible"])
    return Charge(leaf, amounts.of_job(job["total"]), job["preemptible"])


def key(kind: str, namespace: str, name: str) -> str:
    """The name of a job for `quotas`, which knows no jobs."""
    return f"{kind} {namespace}/{name}"


def _key(job: Mapping[str, Any]) -> str:
    return key(job["kind"], job["namespace"], job["name"])


def _admitted() -> Iterator[Charge]:
    return _alike(snapshot.charged_jobs(), "charge", _readable)


def _readable(charge: Any) -> Mapping[str, int]:
    """Of a charge that cannot be read, one job: this is shown, and decides nothing."""
    try:
        return stored_amounts.amounts(charge)
    except stored_amounts.Unreadable:
        return {amounts.MAX_JOBS: 1}


def _waiting() -> Iterator[Charge]:
    return _alike(_uncharged().exclude(leaf=""), "total", amounts.of_job)


def _outside() -> usage.Outside:
    # What still has a charge is about to be evicted, since its leaf was removed.
    runs = Q(state__in=Job.ON_MEMBER, charge__isnull=True)
    sums = Job.objects.filter(leaf="", state__in=(*Job.ON_MEMBER, *Job.WAITING)).aggregate(
        running=Count("pk", filter=runs),
        waiting=Count("pk", filter=Q(state__in=Job.WAITING, suspended=False, deleting_at__isnull=True)),
        gpus=Sum("gpus", filter=runs, default=0),
    )
    return usage.Outside(**sums)


def _alike(rows: QuerySet[Job], column: str, read: Callable[[Any], Mapping[str, int]]) -> Iterator[Charge]:
    """One charge for all jobs of a leaf that ask the same: thousands of jobs come in a few sizes."""
    for leaf, request, preemptible, count in rows.values_list("leaf", column, "preemptible").annotate(Count("pk")):
        yield Charge(leaf, {name: value * count for name, value in read(request).items()}, preemptible)


def _uncharged() -> QuerySet[Job]:
    return snapshot.waiting_jobs().filter(charge__isnull=True).order_by()
