"""Loads running gangs for preemption: where their pods are, and which of them they can give back while they run on.

Of a role that becomes smaller the pods with the highest indexes go: so operators do it, and where they choose others the
preemptor is planned for again when it does not fit. Pods that a gang is giving back already are no part of it any more.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, Subquery

from fleet.db import isolation
from fleet.models import Pod
from jobs.core.admission.snapshot import Quota
from jobs.core.division import shares
from jobs.core.gang.types import AdmittedGang, SurplusPod
from jobs.kinds import registry
from jobs.models import Job
from jobs.snapshot_rows import LIVE, charge_of
from quotas.core.accounts.ledger import Charge
from quotas.core.reclaiming.candidates import protected_until
from quotas.core.reclaiming.victims import BETWEEN_BORROWERS
from quotas.core.trees.flavors import flavor_of
from quotas.core.trees.tree import Tree

_RUNNING = (
    "pk", "uid", "namespace", "name", "leaf", "charge", "preemptible", "priority", "started_at", "cluster__name",
    "total", "roles", "attempt", "reclaim", "shares", "charged_at", "queued_at", "size", "elastic", "shrinks", "state",
    "api_version", "kind",
)  # fmt: skip
_JUST_NOW = datetime.max.replace(tzinfo=UTC)
"""When a job started that has not: there is no work to lose."""
Nodes = Mapping[str, Mapping[int, str]]
"""Role -> the node of each live pod, empty where it is not bound, by its place in the order in which pods stay.

That is its index where the operator ends those of the highest indexes, whatever became of the others.
"""


def load_runners(rows: QuerySet[Job], quota: Quota) -> tuple[AdmittedGang, ...]:
    jobs = [job for job in rows.values(*_RUNNING) if job["leaf"] in quota.ledger.path_rows]
    if not jobs:
        return ()
    nodes = _nodes(rows, jobs)
    parts = isolation.apart(
        "scheduler.running",
        jobs,
        lambda some: [_runner(job, nodes[job["uid"]]) for job in some],
        id_of=lambda job: f"job {job['pk']}",
        savepoint=False,
    )
    return tuple(runner for part in parts for runner in part)


def load_parts(rows: QuerySet[Job], quota: Quota, now: datetime, kept_for: timedelta) -> list[AdmittedGang]:
    """The pods that these jobs are giving back, apart for each preemptor, until it has had its time to start."""
    shrinking = rows.filter(state=Job.State.RUNNING, shrinks__isnull=False)
    jobs = [job for job in shrinking.values(*_RUNNING) if job["leaf"] in quota.ledger.path_rows]
    if not jobs:
        return []
    nodes = _nodes(shrinking, jobs)
    parts = [_part(job, record, nodes[job["uid"]]) for job in jobs for record in _shrinks(job)]
    return [part for part in parts if part.until and now < part.until + kept_for]


def _nodes(rows: QuerySet[Job], jobs: Sequence[Mapping[str, Any]]) -> Mapping[UUID, Nodes]:
    of = {job["uid"]: job for job in jobs}
    nodes: dict[UUID, dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    live = Pod.objects.filter(job_uid__in=Subquery(rows.values("uid")), phase__in=LIVE).order_by("index", "name")
    for uid, cluster, role, index, node in live.values_list("job_uid", "cluster__name", "role", "index", "node"):
        # Of a job that is divided, its largest share: more is given back than is counted on.
        if uid in of and cluster == of[uid]["cluster__name"]:
            placed = nodes[uid][role]
            place = index if registry.kind_of(of[uid]["api_version"], of[uid]["kind"]).ends_last else len(placed)
            placed[place] = placed.get(place) or node
    return nodes


def _runner(job: Mapping[str, Any], nodes: Nodes) -> AdmittedGang:
    reclaim = job["reclaim"] or {}
    pods = [
        (node, role["request"])
        for role in job["roles"]
        for node in _staying(job, role["name"], nodes.get(role["name"], {}))
        if node
    ]
    return AdmittedGang(
        job_id=job["pk"],
        name=f"{job['namespace']}/{job['name']}",
        charge=charge_of(job["pk"], job["leaf"], job["charge"], job["preemptible"]),
        priority=job["priority"],
        started_at=job["started_at"] or _JUST_NOW,
        cluster=job["cluster__name"] or "",
        total=job["total"],
        attempt=job["attempt"],
        pods=tuple(pods),
        leaves_for=reclaim.get("job") or 0,
        goes_to=reclaim.get("to") or "",
        lends=reclaim.get("cause") in BETWEEN_BORROWERS,
        ordered_at=datetime.fromisoformat(reclaim["at"]) if "at" in reclaim else None,
        until=datetime.fromisoformat(reclaim["until"]) if "until" in reclaim else None,
        hold_key=(str(job["uid"]), shares.number_on(job["shares"], job["cluster__name"], job["attempt"])),
        admitted_at=admitted_at(job),
        sizes=tuple((role, size["replicas"]) for role, size in (job["size"] or {}).items()),
        surplus=tuple(_surplus(job, nodes)),
    )


def _staying(job: Mapping[str, Any], role: str, nodes: Mapping[int, str]) -> list[str]:
    leaving = {index for record in _shrinks(job) for index in _indexes(job, record, role)}
    return [node for index, node in nodes.items() if index not in leaving]


def _surplus(job: Mapping[str, Any], nodes: Nodes) -> Iterable[SurplusPod]:
    """The pods above the min of a job that has opted in; the last go first.

    Where others before them have no node, only as long as its min of those that run stays.
    """
    resized_by_request_alone = job["shares"] or any(flavor_of(name) for name in job["charge"] or {})
    if job["state"] != Job.State.RUNNING or not job["elastic"] or resized_by_request_alone:
        return
    requests = {role["name"]: role["request"] for role in job["roles"]}
    for role, size in (job["size"] or {}).items():
        bound = nodes.get(role, {})
        running = sorted(index for index, node in bound.items() if node)
        for index in reversed(range(size["min"], size["replicas"])):
            if running and running[-1] >= index and bisect_left(running, index) < size["min"]:
                break
            yield SurplusPod(role, requests[role], bound.get(index, ""))


def _shrinks(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the job gives back of its current attempt."""
    records = (job["shrinks"] or []) if job["state"] == Job.State.RUNNING else []
    return [record for record in records if record["attempt"] == job["attempt"]]


def _indexes(job: Mapping[str, Any], record: Mapping[str, Any], role: str) -> range:
    """Of the pods that leave, among all of the role: those that a later growth needs again stay."""
    before, after = record["sizes"].get(role, (0, 0))
    now = next((each["replicas"] for each in job["roles"] if each["name"] == role), 0)
    return range(max(after, now), before)


def _part(job: Mapping[str, Any], record: Mapping[str, Any], nodes: Nodes) -> AdmittedGang:
    requests = {role["name"]: role["request"] for role in job["roles"]}
    pods = [
        (nodes[role][index], requests[role])
        for role in record["sizes"]
        for index in _indexes(job, record, role)
        if nodes.get(role, {}).get(index)
    ]
    total: dict[str, int] = {}
    for _, request in pods:
        total = {name: total.get(name, 0) + request.get(name, 0) for name in {**total, **request}}
    return AdmittedGang(
        job_id=job["pk"],
        name=f"{job['namespace']}/{job['name']}",
        charge=Charge(job["leaf"], {}, job["preemptible"]),
        priority=job["priority"],
        started_at=job["started_at"] or _JUST_NOW,
        cluster=job["cluster__name"] or "",
        total=total,
        attempt=job["attempt"],
        pods=tuple(pods),
        leaves_for=record["job"],
        goes_to=record["to"],
        lends=record.get("cause") in BETWEEN_BORROWERS,
        ordered_at=datetime.fromisoformat(record["at"]),
        until=datetime.fromisoformat(record["until"]),
        fewer=tuple((role, before - after) for role, (before, after) in sorted(record["sizes"].items())),
    )


def admitted_at(job: Mapping[str, Any]) -> datetime:
    """Since when the leaf of a charged job is charged for it; of jobs that an older version placed, an earlier moment."""
    at: datetime = job["charged_at"] or job["started_at"] or job["queued_at"]
    return at


def first_unprotected(rows: QuerySet[Job], tree: Tree, leaf: str, resource: str, now: datetime) -> datetime | None:
    """When the min-runtime of the first of these jobs of a leaf is over that hold some of a resource.

    None: that of one is, one can give back pods, which no min-runtime protects, or there is none.
    """
    if not tree.by_path[leaf].attributes.min_runtime:
        return None
    jobs = [job for job in rows.filter(leaf=leaf).order_by().values(*_RUNNING) if (job["charge"] or {}).get(resource)]
    if any(pod.request.get(resource) for job in jobs for pod in _surplus(job, {})):
        return None
    ends = [protected_until(tree, leaf, admitted_at(job), now) for job in jobs]
    return min((end for end in ends if end), default=None) if all(ends) else None
