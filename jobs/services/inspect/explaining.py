"""Why one job is where it is: every cluster looked at, what stands in its way there, and what would let it start.

For a job that waits the placement engine is asked anew, on the fleet as it is now; for one that has a place, what was
written down when it was given. Only looks. Whether the scheduler has its turn next is not known here: a job that fits
everywhere may still wait for its quota, which is listed beside.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from fleet.db import isolation
from fleet.models import Cluster, Hold, Node, Pod
from fleet.services.clusters import node_exclusions
from jobs import snapshot
from jobs.core import reasons
from jobs.core.admission import divided_placement
from jobs.core.admission.placement_cache import Reservation
from jobs.core.division import shares as parts
from jobs.core.explain.changes import Occupant
from jobs.core.explain.remedies import Change
from jobs.core.gang import requirements, topology_constraints
from jobs.core.gang.requirements import GangRequirements, PodRequirements
from jobs.core.gang.types import Gang
from jobs.core.manifest_fields import Faults
from jobs.core.placement.engine import Engine
from jobs.core.placement.explaining import Cause, Look, explain_clusters, never_fits
from jobs.core.placement.types import NodeFacts
from jobs.core.policies import preferences
from jobs.core.reasons import Code, Verdict
from jobs.core.scheduling.scheduler import Scheduler
from jobs.core.topology.speed import Speed
from jobs.kinds import registry
from jobs.models import Job
from jobs.services.failover import eviction_rate, lost_gangs, returns
from jobs.services.inspect import remedies, speeds
from jobs.services.inspect.remedies import Sees, WaitingJob
from jobs.services.scheduling import plan_failures, runtimes
from jobs.snapshot_topology import whereabouts
from quotas.services import usage

_HOLDS_TOLD = 20


@dataclass(frozen=True, slots=True)
class Claim:
    """What is promised on a cluster to a job whose pods are not seen there yet, or kept for one that waits."""

    job: str
    amounts: Mapping[str, int]
    pods: int
    made_at: datetime
    ends: str = "when its pods are bound and visible, or its placement is undone"
    until: datetime | None = None
    """When that is expected; None: unknown."""


@dataclass(frozen=True, slots=True)
class ClusterExplained:
    """One cluster looked at."""

    cluster: str
    fits: bool
    chosen: bool
    code: str
    cause: str
    message: str
    short: Mapping[str, int] = field(default_factory=dict)
    role: str = ""
    nodes: str = ""
    never: bool = False
    term: int = 0
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    held: Sequence[Claim] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    job: Job
    at: datetime
    """When the clusters were looked at."""
    outcome: str
    """Waits, Fits (nothing but its turn or its quota is in the way), Placed or Ended."""
    message: str
    never: bool
    clusters: Sequence[ClusterExplained]
    changes: Sequence[Change]
    quota: Mapping[str, Any] | None
    speed: Speed | None = None


def sees_everything(namespace: str) -> bool:
    return True


def explain_job(job: Job, now: datetime, sees: Sees = sees_everything) -> Explanation:
    """``sees``: of jobs in namespaces that the reader may not see only amounts are shown."""
    reason = job.reason or {}
    quota = reason.get("quota")
    if job.finished or job.deleting_at is not None:
        message = reason.get("message") or f"it has ended: {job.state}"
        return Explanation(job, now, "Ended", message, False, (), (), quota)
    if job.state not in Job.WAITING and not (job.suspended and job.cluster_id is None):
        return _explain_placed(job, now)
    explained = isolation.run("explain", [f"job {job.pk}"], partial(_explain_waiting, job, now, quota, sees))
    return explained[0] if explained else _explain_stored(job, now, quota)


def _explain_stored(job: Job, now: datetime, quota: Mapping[str, Any] | None) -> Explanation:
    """Of a job that the scheduler cannot plan either: the reason that it stored."""
    reason = job.reason or {}
    clusters = [_stored_verdict(row, set()) for row in reason.get("clusters", ())]
    return Explanation(job, now, "Waits", reason.get("message") or "", False, clusters, (), quota)


def _explain_placed(job: Job, now: datetime) -> Explanation:
    binding = getattr(job, "binding", None)
    chosen = {share.cluster for share in parts.standing(job.shares)} or ({job.cluster.name} if job.cluster else set())
    rows = binding.explanation if binding else []
    clusters = [_stored_verdict(row, chosen) for row in rows]
    message = (job.reason or {}).get("message") or f"it runs on {', '.join(sorted(chosen))}"
    message += _unseen(chosen) + _why_it_has_not_left(job, now) + lost_gangs.describe(job, now)
    at = binding.scheduled_at if binding and binding.scheduled_at else now
    speed = speeds.of_placed(job, binding.placement) if binding else None
    return Explanation(job, at, "Placed", message, False, clusters, remedies.of_placed(job), None, speed)


def _why_it_has_not_left(job: Job, now: datetime) -> str:
    """Of a job whose cluster is tainted, and which the rate of evictions holds back there."""
    cluster = job.cluster
    if cluster is None or job.shares or job.state not in Job.ON_MEMBER or not cluster.taints:
        return ""
    why = "" if returns.may_stay(job, cluster, now) else eviction_rate.why_later(cluster, now)
    return f"; it is to leave {cluster}: {why}" if why else ""


def _unseen(names: Iterable[str]) -> str:
    """Which of its clusters cannot be seen now, since when and why: what is shown of the job there is as of then."""
    rows = Cluster.objects.filter(name__in=names).exclude(state=Cluster.State.READY).order_by("name")
    clusters = rows.values_list("name", "state", "state_since", "state_message")
    return "".join(f"; {name} is {state} since {since:%H:%M:%S} UTC: {why}" for name, state, since, why in clusters)


def _stored_verdict(row: Mapping[str, Any], chosen: set[str]) -> ClusterExplained:
    known = {name: row[name] for name in ("short", "role", "nodes", "never", "term", "score", "parts") if name in row}
    fits, cause = bool(row.get("fits")), row.get("cause") or (Cause.NONE if row.get("fits") else Cause.FILTER)
    return ClusterExplained(
        row["cluster"], fits, row["cluster"] in chosen, row["code"], str(cause), row["message"], **known
    )


def _explain_waiting(job: Job, now: datetime, quota: Mapping[str, Any] | None, sees: Sees) -> Explanation:
    places, gang = _scheduler_of_now(now).places, gang_of(job)
    demand = demand_of(job).placed_like(gang.demand)
    reservation = places.reservation if places.reservation and not places.is_reserved_for(job.pk) else None
    with places.on_own_reservation(job.pk):
        looks = _explain_clusters(places.engine, gang, demand, now)
        lost = never_fits(looks)
        looks = tuple(_with_verdict(look, places.name_reservation(look.verdict, gang, (), now)) for look in looks)
        waits_for = {reservation.reserved.cluster: (reservation.gang.name, reservation.until)} if reservation else {}
        waiting = WaitingJob(job, gang, demand, places.engine, looks, now, lost, _occupants, _nodes, waits_for)
        changes = remedies.shown_to(remedies.find_remedies(waiting), sees)
    claims = _claims(sees)
    if reservation:
        claims[reservation.reserved.cluster].insert(0, _reservation_claim(reservation, sees))
    clusters = [_cluster_verdict(look, claims.get(look.cluster, ())) for look in looks]
    fits = any(each.fits for each in clusters)
    message = _message(job, looks, fits=fits, lost=lost) + _lately(job, now)
    speed = speeds.of_found(job, places.engine.find(gang, demand, now)) if fits else None
    return Explanation(job, now, "Fits" if fits else "Waits", message, lost, clusters, changes, quota, speed)


def _lately(job: Job, now: datetime) -> str:
    """What its queue and its user have used lately, where turns are taken by that."""
    tree, _ = snapshot.tree_in_force()
    if tree is None or job.leaf not in tree.by_path or not tree.shares_over_time:
        return ""
    recent = usage.recent_hours(tree, now)
    mine = recent.by_user.get(job.leaf, {}).get(job.submitted_by, 0.0)
    siblings = tree.children.get(tree.by_path[job.leaf].parent, ())
    others = ", ".join(f"{node.name} {recent.by_path[node.path]:.1f}" for node in siblings if node.path != job.leaf)
    beside = f" (beside it: {others})" if others and len(siblings) <= _MOST_SIBLINGS else ""
    queue = f"{job.leaf} has used {recent.by_path[job.leaf]:.1f} GPU-hours lately{beside}"
    return f"; turns go by GPU-time: {queue}, of which {mine:.1f} are its user's"


_MOST_SIBLINGS = 8


def _message(job: Job, looks: Sequence[Look], *, fits: bool, lost: bool) -> str:
    if lost:
        message = "; ".join(f"{look.cluster} {look.message}" for look in looks if look.never)
        return f"it never fits: no cluster that its policy allows could hold it even empty: {message}"
    waits = (job.reason or {}).get("message")
    if fits:
        names = ", ".join(look.cluster for look in looks if look.code is Code.FITS)
        return f"it fits on {names}; what it waits for: {waits or 'the scheduler'}"
    if job.policy is None and waits:
        return str(waits)
    return reasons.no_cluster_fits([look.verdict for look in looks]).message


def _explain_clusters(engine: Engine, gang: Gang, demand: GangRequirements, now: datetime) -> tuple[Look, ...]:
    """Of a job that may be divided, what each cluster has room for."""
    if gang.division is None:
        return tuple(explain_clusters(engine, gang, demand, now))
    looks = {look.cluster: look for look in explain_clusters(engine, gang, divided_placement.demand_of(gang, 1), now)}
    verdicts = divided_placement.explain_shares(engine, gang, now)
    return tuple(replace(_with_verdict(looks[each.cluster], each), short=each.short) for each in verdicts)


def _with_verdict(look: Look, verdict: Verdict) -> Look:
    """With what the scheduler adds to it."""
    cause = Cause.KEPT if verdict.code is Code.KEPT_FOR_GANG else look.cause
    return replace(look, code=verdict.code, message=verdict.message, cause=cause)


def _reservation_claim(reservation: Reservation, sees: Sees) -> Claim:
    amounts: Counter[str] = Counter()
    for each, names in reservation.hold.nodes:
        amounts.update({resource: amount * len(names) for resource, amount in each.items()})
    until = f"{reservation.until:%H:%M:%S} UTC"
    ends = f"when it starts on the {len(reservation.reserved.nodes)} nodes kept for it, expected at {until}"
    return Claim(
        _visible_name(reservation.gang.name, sees),
        amounts,
        reservation.gang.pods,
        reservation.gang.queued_at,
        ends,
        reservation.until,
    )


def _cluster_verdict(look: Look, claims: Sequence[Claim]) -> ClusterExplained:
    shown = {name: value for name, value in asdict(look).items() if name not in ("cluster", "code", "cause", "message")}
    resources = {resource for resource in look.short} or ({"pods"} if look.cause is Cause.KEPT else set())
    claims_on_it = [claim for claim in claims if any(claim.amounts.get(resource) for resource in resources)]
    fits = look.code is Code.FITS
    return ClusterExplained(
        look.cluster,
        fits,
        False,
        look.code.value,
        look.cause.value,
        look.message,
        held=claims_on_it[:_HOLDS_TOLD],
        **shown,
    )


def _visible_name(name: str, sees: Sees) -> str:
    """Empty when it is of a namespace that the reader may not see."""
    return name if sees(name.partition("/")[0]) else ""


# an engine loaded from rows


def gang_of(job: Job) -> Gang:
    """As the scheduler sees it."""
    [gang] = snapshot.load_gangs(Job.objects.filter(pk=job.pk))
    return gang


def demand_of(job: Job) -> GangRequirements:
    return demand(job.api_version, job.kind, job.manifest, job.roles)


def demand(
    api_version: str, kind: str, manifest: Mapping[str, Any], roles: Iterable[Mapping[str, Any]]
) -> GangRequirements:
    """What its pods ask of nodes. A role without a template of its own asks the amounts that its kind read."""
    known = registry.kind_of(api_version, kind)
    templates = dict(known.templates(dict(manifest)))
    pods = ((role["name"], role["replicas"], templates.get(role["name"], {})) for role in roles)
    within = topology_constraints.parse_topology_constraints(manifest, templates.values(), Faults())
    data = preferences.data((manifest.get("metadata") or {}).get("annotations") or {}, Faults())
    demand_of_roles = requirements.parse_pod_requirements(
        pods, within=within, scheduler=known.scheduler(dict(manifest)), data=data
    )
    requests = {role["name"]: role["request"] for role in roles}
    parts = tuple(
        replace(p, ask=replace(p.ask, request=PodRequirements.from_request(requests[p.role]).request))
        for p in demand_of_roles.parts
    )
    return replace(demand_of_roles, parts=parts)


def _scheduler_of_now(now: datetime) -> Scheduler:
    """A scheduler loaded from rows, with the nodes reserved that its next cycle would reserve."""
    scheduler = Scheduler.from_snapshot(snapshot.load(now), plan_failures.guard)
    scheduler.attempt("reserve", 0, partial(scheduler.reserve_nodes, now, partial(runtimes.load, now)))
    return scheduler


def _claims(sees: Sees) -> dict[str, list[Claim]]:
    """Open promises by cluster, the oldest first."""
    rows = list(Hold.objects.filter(released_at__isnull=True).select_related("cluster").order_by("made_at", "pk"))
    jobs = _names(hold.job_uid for hold in rows)
    claims: dict[str, list[Claim]] = defaultdict(list)
    for hold in rows:
        name = _visible_name(jobs.get(hold.job_uid, ""), sees)
        claims[hold.cluster.name].append(Claim(name, hold.amounts, hold.pods, hold.made_at))
    return claims


def _names(uids: Iterable[UUID]) -> dict[UUID, str]:
    rows = Job.objects.filter(uid__in=set(uids)).values_list("uid", "namespace", "name")
    return {uid: f"{namespace}/{name}" for uid, namespace, name in rows}


def _occupants(cluster: str) -> list[Occupant]:
    """The jobs whose pods stand on the cluster's nodes, with what each would give back where."""
    bound = Pod.objects.filter(cluster__name=cluster, phase__in=snapshot.LIVE, job_uid__isnull=False).exclude(node="")
    rows = list(bound.values_list("job_uid", "role", "node"))
    requests = {
        uid: (f"{namespace}/{name}", {role["name"]: role["request"] for role in roles})
        for uid, namespace, name, roles in Job.objects.filter(uid__in={row[0] for row in rows}).values_list(
            "uid", "namespace", "name", "roles"
        )
    }
    freed: dict[UUID, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for uid, role, node in rows:
        for resource, amount in requests.get(uid, ("", {}))[1].get(role, {}).items():
            freed[uid][node][resource] += amount
    nodes = {node.name: node for node in _nodes(cluster)}
    return [
        Occupant(requests[uid][0], tuple((nodes[name], dict(a)) for name, a in each.items() if name in nodes), str(uid))
        for uid, each in sorted(freed.items(), key=lambda entry: requests[entry[0]][0])
    ]


def _nodes(cluster: str) -> list[NodeFacts]:
    where, excluded = whereabouts(), node_exclusions.for_everyone()
    return [snapshot.facts_of(node, where, excluded) for node in Node.objects.filter(cluster__name=cluster)]
