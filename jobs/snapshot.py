"""Loads the scheduler's snapshot of fleet and jobs in a fixed number of queries, however many jobs and clusters there are."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db.models import Max, Q, QuerySet, TextField
from django.db.models.functions import Cast

from fleet.core import fits, prices
from fleet.core.node_exclusions import TAINT
from fleet.db import isolation, prepared
from fleet.models import Cluster, Hold, Node
from fleet.services.clusters import node_exclusions
from jobs.core.admission.snapshot import Closed, ClusterState, Quota, Snapshot
from jobs.core.division import shares
from jobs.core.division.replicas import Division
from jobs.core.failover.rules import BLAMED, NOT_THE_CLUSTERS, Past, excluded_until
from jobs.core.gang import requirements
from jobs.core.gang.requirements import PodRequirements
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.life.shares import ShareState
from jobs.core.placement.nodes.fragmentation_scorer import Usual
from jobs.core.placement.types import Member, Mode, NodeFacts
from jobs.core.policies import propagation as policies
from jobs.core.policies.propagation import PolicySpec
from jobs.core.taints import Taint
from jobs.kinds import registry
from jobs.models import Attempt, Binding, Job, Policy
from jobs.snapshot_claims import Locations, claim_locations, clusters_of, mounted, volumes_of
from jobs.snapshot_rows import LIVE as LIVE
from jobs.snapshot_rows import capacity_hold_of, charges_of, past_attempts
from jobs.snapshot_running import admitted_at as admitted_at
from jobs.snapshot_running import first_unprotected as first_unprotected
from jobs.snapshot_running import load_parts
from jobs.snapshot_running import load_runners as load_runners
from jobs.snapshot_topology import Whereabouts, whereabouts
from quotas import queries as quotas
from quotas.core.accounts.budget_accounts import without_borrowing
from quotas.core.accounts.ledger import Charge, Ledger
from quotas.core.trees import window_trees
from quotas.core.trees.budgets import WhenSpent
from quotas.core.trees.flavors import flavor_of
from quotas.core.trees.tree import Tree
from quotas.models import Queue, QuotaTree

WAITING = (
    "pk", "uid", "namespace", "name", "api_version", "kind", "roles", "total", "priority", "queued_at", "policy_id", "attempt",
    "generation", "leaf", "leaf_fault", "preemptible", "charge", "state", "shares", "submitted_by",
    "awaits", "claimed_at", "reclaim", "deadline_at",
)  # fmt: skip
"""What a gang is made of."""
_LEARNED, _LEARNED_FROM = 500, 50
"""Jobs from which the usual mix of pods is learned, and the least that say anything about it."""
_HALF_LIVES = 12
"""Older failures count less than a thousandth."""


def waiting_jobs() -> QuerySet[Job]:
    """Jobs the scheduler may place now."""
    return Job.objects.filter(state__in=Job.WAITING, suspended=False, deleting_at__isnull=True)


def waits(state: str, suspended: bool, deleting_at: datetime | None) -> bool:
    """Whether one that was read is one of them."""
    return state in Job.WAITING and not suspended and deleting_at is None


def load(now: datetime) -> Snapshot:
    """Each part is loaded by itself, and what concerns single jobs can be loaded for those alone."""
    quota = load_quota()
    version = quota.version if quota else 0
    waiting = load_gangs(waiting_jobs().filter(tree_version=version))
    evicting = load_runners(leaving_jobs(), quota) if quota else ()
    left = load_runners(left_jobs(), quota) if quota else ()
    facts = (waiting, load_sites(), quota, evicting, left, failures(now), usual_pods())
    kept_for = timedelta(seconds=settings.CONVOY_CYCLE.nomination_s)
    parts = load_parts(charged_jobs(), quota, now, kept_for) if quota else ()
    return Snapshot(*facts, settings.CONVOY_CYCLE, settings.CONVOY_WEIGHTS, tuple(parts), charges_by_job(quota))


def charges_by_job(quota: Quota | None) -> dict[int, Charge]:
    """What jobs are charged, where it is needed by job: in a tree with windows."""
    if quota is None or not quota.ledger.tree.has_windows:
        return {}
    rows = charged_jobs().values_list("pk", "leaf", "charge", "preemptible")
    return {row[0]: charge for row, charge in zip(rows, charges_of(rows), strict=True)}


def failures(now: datetime) -> dict[str, float]:
    """Jobs that lately failed on each cluster, for the score: each counts once a cluster, half as much a half-life later."""
    half_life = timedelta(seconds=settings.CONVOY_SCHEDULER.failure_half_life_s)
    recent = Attempt.objects.filter(ended_at__gt=failures_count_since(now), outcome__in=BLAMED).order_by()
    recent = recent.exclude(cause__in=NOT_THE_CLUSTERS)
    faded: dict[str, float] = defaultdict(float)
    for cluster, at in (
        recent.values("job", "cluster_name").annotate(at=Max("ended_at")).values_list("cluster_name", "at")
    ):
        faded[cluster] += 0.5 ** (max(now - at, timedelta()) / half_life)
    return {cluster: round(amount, 2) for cluster, amount in sorted(faded.items())}


def failures_count_since(now: datetime) -> datetime:
    """Attempts that ended before this do not count against their cluster any more."""
    return now - _HALF_LIVES * timedelta(seconds=settings.CONVOY_SCHEDULER.failure_half_life_s)


def usual_pods() -> Usual:
    """What the pods of the last `_LEARNED` jobs asked for, with the share of each; nothing where too few jobs are known."""
    recent = list(Job.objects.order_by("-created_at", "-pk").values_list("roles", flat=True)[:_LEARNED])
    pods: dict[PodRequirements, int] = defaultdict(int)
    for role in (role for roles in recent for role in roles):
        pods[requirements.ask_of_stored(role)] += role["replicas"]
    total = sum(pods.values())
    if len(recent) < _LEARNED_FROM or not total:
        return ()
    return tuple(
        sorted(((ask, count / total) for ask, count in pods.items()), key=lambda each: (-each[1], str(each[0])))
    )


def load_gangs(waiting: QuerySet[Job], known: dict[int, PolicySpec] | None = None) -> tuple[Gang, ...]:
    """``known`` are policies read already, and gets those read now."""
    return gangs_of(list(waiting.values(*WAITING).order_by()), {} if known is None else known)


def gangs_of(
    jobs: Sequence[Mapping[str, Any]],
    specs: dict[int, PolicySpec],
    failed: Callable[[int, Exception], None] = lambda _pk, _error: None,
) -> tuple[Gang, ...]:
    """Of jobs with the columns `WAITING`; without those that cannot be read, for which ``failed`` is called."""

    def settle(job: Mapping[str, Any], error: Exception | None) -> None:
        if error is not None:
            failed(job["pk"], error)

    parts = isolation.apart(
        "scheduler.snapshot", jobs, lambda some: _read(some, specs), settle, id_of=_id, savepoint=False
    )
    return tuple(gang for part in parts for gang in part)


def _id(job: Mapping[str, Any]) -> str:
    return f"job {job['pk']}"


def _read(jobs: Sequence[Mapping[str, Any]], specs: dict[int, PolicySpec]) -> tuple[Gang, ...]:
    if unread := {j["policy_id"] for j in jobs if j["policy_id"]} - specs.keys():
        specs.update(specs_of(Policy.objects.filter(pk__in=unread)))
    past = past_attempts(j["pk"] for j in jobs if j["attempt"])
    avoided = node_exclusions.for_jobs(j["uid"] for j in jobs if j["attempt"])
    where = claim_locations(jobs)
    gangs = ((job, _gang(job, specs.get(job["policy_id"]), past.get(job["pk"], []), where)) for job in jobs)
    return tuple(_avoiding(gang, avoided.get(job["uid"], ())) for job, gang in gangs)


def _avoiding(gang: Gang, nodes: tuple[tuple[str, str, str], ...]) -> Gang:
    """The gang that does not go to these nodes, ``(cluster, node, until when and why)``."""
    return replace(gang, needs=gang.demand.avoiding(nodes)) if nodes else gang


def load_sites() -> tuple[ClusterState, ...]:
    """Every cluster with its nodes and what is promised there.

    Promises first: one that is kept meanwhile then counts twice, for once; read later it would not count at all.
    """
    promises: dict[int, list[CapacityHold]] = defaultdict(list)
    for hold in open_holds():
        promises[hold.cluster_id].append(capacity_hold_of(hold, hold.cluster.name))
    nodes: dict[int, list[NodeFacts]] = defaultdict(list)
    where, excluded = whereabouts(), node_exclusions.for_everyone()
    for node in Node.objects.order_by().iterator(chunk_size=5000):
        nodes[node.cluster_id].append(facts_of(node, where, excluded))
    rows = Cluster.objects.defer("access", "permissions").order_by("name")
    return tuple(ClusterState(row.pk, member_of(row), tuple(nodes[row.pk]), tuple(promises[row.pk])) for row in rows)


def open_holds() -> QuerySet[Hold]:
    rows = Hold.objects.filter(released_at__isnull=True).select_related("cluster").order_by()
    return rows.defer("cluster__access", "cluster__permissions")


def facts_of(node: Node, where: Whereabouts, excluded: Mapping[tuple[int, str], str]) -> NodeFacts:
    """``excluded``: (cluster, node) -> until when and why it takes no pods of anybody."""
    return NodeFacts(
        name=node.name,
        allocatable=node.allocatable,
        requested=node.requested,
        labels=node.labels,
        # The ledger itself says who is kept off, and when it ends; the taint in the member follows it.
        taints=taints_of(taint for taint in node.taints if taint.get("key") != TAINT),
        usable=node.ready and not node.unschedulable,
        domain=where.domain(node),
        excluded=excluded.get((node.cluster_id, node.name), ""),
    )


def member_of(row: Cluster) -> Member:
    return Member(
        name=row.name,
        ready=row.state == Cluster.State.READY,
        cordoned=row.cordoned,
        synced=row.synced_at is not None,
        stale=row.freshness_message if row.stale_since else "",
        labels=row.labels,
        places={"provider": row.provider, "region": row.region, "zone": row.zone},
        taints=taints_of(row.taints),
        apis=row.apis,
        mode=Mode.AGGREGATE if row.labels.get(fits.FIT) == fits.AGGREGATE else Mode.NODE_FIT,
        reserves=row.labels.get(fits.FIT) == fits.RESERVATION,
        no_reservations=row.offer.refusal,
        prices=prices.parse_prices(row.labels),
    )


def load_quota(charges: Iterable[Charge] | None = None) -> Quota | None:
    """The tree in force, everything charged (these, or what is now), and the queues that admit nothing; None without a tree."""
    tree, version = tree_in_force()
    if tree is None:
        return None
    rows = _closing(_CLOSED)
    modest = {row.path: row.spent for row in rows if row.spent and row.spent["when"] == WhenSpent.BORROW_NOTHING}
    open_now = window_trees.with_amounts(tree, quotas.window_amounts(rows))
    ledger = ledger_of(without_borrowing(open_now, modest, _offered() if modest else ()), charges)
    return Quota(ledger, version, _closed_below(tree, rows, _CLOSED, _SPENT), modest, tree)


def _offered() -> set[str]:
    """The resources that nodes have."""
    kinds: Iterable[Mapping[str, int]] = Node.objects.order_by().values_list("allocatable", flat=True).distinct()
    return {name for allocatable in kinds for name in allocatable}


def tree_version() -> int:
    """The resource version of the quota tree; 0 without one."""
    return next((version for (version,) in _TREE_VERSION.values()), 0)


_TREE_VERSION = prepared.Rows(lambda _: QuotaTree.objects.order_by("pk").values_list("resource_version")[:1])


def tree_in_force() -> tuple[Tree | None, int]:
    """The quota tree and its resource version, parsed once for each manifest; None and 0 without one."""
    rows = _IN_FORCE.values()
    return (_parsed(rows[0][0]), rows[0][1]) if rows else (None, 0)


_IN_FORCE = prepared.Rows(
    lambda _: QuotaTree.objects.order_by("pk").values_list(Cast("manifest", TextField()), "resource_version")[:1]
)


@lru_cache(maxsize=2)
def _parsed(manifest: str) -> Tree:
    return quotas.parse_row(QuotaTree(manifest=json.loads(manifest)))


def ledger_of(tree: Tree, charges: Iterable[Charge] | None = None) -> Ledger:
    """A leaf that is not in this tree is in a newer one, and whatever is decided by this one will not be written."""
    if charges is None:
        charges = charges_of(charged_jobs().values_list("pk", "leaf", "charge", "preemptible"))
    return Ledger.from_charges(tree, (each for each in charges if each.leaf in tree.by_path))


def charged_jobs() -> QuerySet[Job]:
    """Whose charges are the ledger."""
    return Job.objects.filter(charge__isnull=False).order_by()


def leaving_jobs() -> QuerySet[Job]:
    """Who makes room: charged until their pods are gone."""
    return charged_jobs().filter(state=Job.State.RECLAIMING, deleting_at__isnull=True)


def left_jobs() -> QuerySet[Job]:
    """Who has made room for another, and waits to be placed again."""
    return waiting_jobs().filter(reclaim__isnull=False, charge__isnull=True).order_by()


def running_jobs() -> QuerySet[Job]:
    """Jobs that might be asked to make room; those too that wait again, charged for a copy that may still run."""
    rows = charged_jobs().filter(preemptible=True, suspended=False, deleting_at__isnull=True)
    return rows.filter(Q(state__in=Job.ON_MEMBER, cluster__isnull=False) | Q(state__in=Job.WAITING))


def shrinking_jobs() -> QuerySet[Job]:
    """Jobs that gave back pods for a preemptor, which may be there still."""
    return Job.objects.filter(shrinks__isnull=False).order_by()


def stopped_leaves() -> dict[str, Closed]:
    """The leaves whose jobs may not go on."""
    rows = _closing([Queue.State.STOPPED])
    tree = tree_in_force()[0] if rows else None
    return _closed_below(tree, rows, [Queue.State.STOPPED], [WhenSpent.STOP]) if tree else {}


_CLOSED = (Queue.State.HELD, Queue.State.DRAINING, Queue.State.STOPPED)


_SPENT = (WhenSpent.WAIT, WhenSpent.STOP)


def closed_leaves(tree: Tree) -> dict[str, Closed]:
    return _closed_below(tree, _closing(_CLOSED), _CLOSED, _SPENT)


def _closing(states: Sequence[str]) -> list[Queue]:
    """Queues in these states, and those of nodes whose budget is used up or of which a window is open."""
    concerned = Q(state__in=states) | Q(spent__isnull=False) | Q(window__isnull=False)
    return list(quotas.queues().filter(concerned).order_by("path"))


def _closed_below(
    tree: Tree, rows: Iterable[Queue], states: Sequence[str], when_spent: Sequence[str]
) -> dict[str, Closed]:
    closed = {row.path: Closed(row.path, row.name, row.state) for row in rows if row.state in states}
    for row in rows:
        if row.path not in closed and row.spent and row.spent["when"] in when_spent:
            closed[row.path] = Closed(row.path, row.name, row.state, row.spent)
    if not closed:
        return {}
    closed_nodes: dict[str, Closed] = {}
    for leaf in tree.leaves:
        above = [closed[node.path] for node in tree.to_root(leaf.path) if node.path in closed]
        if above:
            closed_nodes[leaf.path] = above[-1]
    return closed_nodes


def specs_of(rows: Iterable[Policy]) -> dict[int, PolicySpec]:
    """The read policies by primary key."""
    return {row.pk: policies.parse_propagation_policy(row.manifest, known_kinds()) for row in rows}


def spec_of(job: Job) -> PolicySpec:
    """The policy of one job, read; of one whose policy was deleted after it was placed, as that was."""
    if job.policy:
        return policies.parse_propagation_policy(job.policy.manifest, known_kinds())
    former = Binding.objects.filter(job=job.pk).values_list("former_policy", flat=True).first() if job.attempt else None
    return policies.parse_propagation_policy(former, known_kinds()) if former else PolicySpec()


def known_kinds() -> list[tuple[str, str]]:
    return [(kind.resource.api_version, kind.resource.kind) for kind in registry.everything()]


def taints_of(entries: Iterable[Mapping[str, Any]]) -> tuple[Taint, ...]:
    """A cluster's taints as the core knows them."""
    return tuple(
        Taint(
            entry.get("key", ""),
            entry.get("effect", ""),
            entry.get("value") or "",
            datetime.fromisoformat(entry["timeAdded"]) if entry.get("timeAdded") else datetime.min.replace(tzinfo=UTC),
        )
        for entry in entries
    )


def _gang(job: Mapping[str, Any], spec: PolicySpec | None, past: list[Past], where: Locations) -> Gang:
    division, roles = _division(job, spec)
    claims = tuple(f"{job['namespace']}/{name}" for name in mounted(job["roles"]))
    # A share that is placed again goes to a cluster that has none, and has its own copy of the claim there.
    moves = division is not None and job["state"] == Job.State.MOVING
    free = (spec is not None and spec.data_anywhere) or moves
    cool_off = timedelta(seconds=settings.CONVOY_FAILOVER.cool_off_s)
    gang = Gang(
        job_id=job["pk"],
        name=f"{job['namespace']}/{job['name']}",
        api_version=job["api_version"],
        kind=job["kind"],
        roles=tuple((r["name"], r["replicas"], r["request"]) for r in roles),
        total=job["total"],
        priority=job["priority"],
        queued_at=job["queued_at"],
        policy=spec,
        attempt=job["attempt"],
        generation=job["generation"],
        excluded=excluded_until(past, cool_off, spec.cool_offs if spec else None),
        leaf=job["leaf"],
        leaf_fault=job["leaf_fault"],
        preemptible=job["preemptible"],
        charged=job["charge"] is not None,
        queued=job["state"] == Job.State.QUEUED,
        uid=str(job["uid"]),
        needs=requirements.of_stored(roles),
        division=division,
        claims=claims,
        bound_to=() if free else tuple((claim, clusters_of(where[claim])) for claim in claims if claim in where),
        runtime_s=declared_runtime(job["roles"]),
        deadline_at=job["deadline_at"],
        user=job["submitted_by"],
        awaits=(job["awaits"]["code"], job["awaits"]["message"]) if job["awaits"] else None,
        has_claimed=job["claimed_at"] is not None,
        stopped_for=(job["reclaim"] or {}).get("job", 0),
        flavors=flavors_charged(job["charge"]),
    )
    volumes = {} if free else volumes_of(job, where)
    return replace(gang, needs=gang.demand.mounting(volumes)) if volumes else gang


def flavors_charged(charge: Mapping[str, int] | None) -> tuple[tuple[str, int], ...]:
    """The part of a stored charge that is of flavors."""
    return tuple(sorted((name, amount) for name, amount in (charge or {}).items() if flavor_of(name)))


def declared_runtime(roles: Iterable[Mapping[str, Any]]) -> float | None:
    """How many seconds a job says it runs: as long as the role that says most; None: no role says."""
    return max((role["lasts"] for role in roles if "lasts" in role), default=None)


def division_of(job: Job, spec: PolicySpec | None) -> Division | None:
    """How the job would be divided now."""
    return _division({"roles": job.roles, "shares": job.shares, "state": job.state}, spec)[0]


def _division(job: Mapping[str, Any], spec: PolicySpec | None) -> tuple[Division | None, list[dict[str, Any]]]:
    """How it is divided, and its roles with as many replicas as have no place yet."""
    roles, known = job["roles"], shares.of_stored(job["shares"])
    is_moving = job["state"] == Job.State.MOVING
    if not is_moving and not any(map(shares.is_done_in_part, known)):
        known = []
    completions = shares.divisible(roles)
    if completions is None or not (known or (spec and spec.division)):
        return None, roles
    pods, left = shares.missing(roles[0]["replicas"], completions, known)
    # A job that was stopped whole has no copy left anywhere: what it has completed counts, wherever that was.
    standing = (share.cluster for share in known if is_moving and share.state is not ShareState.LOST)
    return Division(pods, left, tuple(sorted(standing)), fresh=not known), [{**roles[0], "replicas": pods}]
