"""What jobs that run already are charged for by flavor: when the table of flavors changes, and when a copy is adopted.

A job that is placed under a table is charged for the flavor it is placed on, and kept to its nodes. One that was placed before
counts by the nodes where its pods are, or where capacity is held for them. What is known of neither counts as of no flavor.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from fleet.models import Hold, Node, Pod
from jobs import snapshot
from jobs.kinds import registry
from jobs.kinds.base import Manifest
from jobs.models import Job, Work
from quotas.core.trees.flavors import GPU, Flavors, amount_name, flavor_of, node_flavor

_CHUNK = 500
_Places = list[tuple[int, str, int]]
"""(cluster, node, GPUs there)."""


def by_nodes(pks: Collection[int], flavors: Flavors) -> dict[int, dict[str, int]]:
    """The GPUs of each flavor that these jobs use now, by job and by the name of the amount."""
    charges: dict[int, dict[str, int]] = {}
    ordered = sorted(pks)
    for start in range(0, len(ordered), _CHUNK):
        jobs = list(Job.objects.filter(pk__in=ordered[start : start + _CHUNK]).only("uid", "attempt", "roles"))
        labels = _labels(jobs)
        held, bound = _held(jobs), _bound(jobs)
        for job in jobs:
            used: Counter[str] = Counter()
            for role, stated in labels.get(job.uid, {}).items():
                used[node_flavor(flavors, stated)] += _gpus(job, role)
            if not used.total():
                used = _by_flavor(held.get(job.uid) or bound.get(job.uid) or [], flavors)
            charges[job.pk] = {amount_name(name): gpus for name, gpus in sorted(used.items()) if name and gpus}
    return charges


def of_copy(job: Job, copy: Manifest) -> dict[str, int]:
    """The GPUs of each flavor that an adopted copy is kept to by its node selectors."""
    tree, _ = snapshot.tree_in_force()
    if tree is None or not tree.flavors:
        return {}
    used: Counter[str] = Counter()
    for role, template in registry.kind_of(job.api_version, job.kind).templates(copy):
        selector = (template.get("spec") or {}).get("nodeSelector") or {}
        used[node_flavor(tree.flavors, selector)] += _gpus(job, role)
    return {amount_name(name): gpus for name, gpus in sorted(used.items()) if name and gpus}


def recharged(charge: Mapping[str, int], of_flavors: Mapping[str, int]) -> dict[str, int]:
    """The charge with these amounts of flavors in place of those it has."""
    return {name: amount for name, amount in charge.items() if not flavor_of(name)} | dict(of_flavors)


def _gpus(job: Job, role: str) -> int:
    return sum(each["replicas"] * each["request"].get(GPU, 0) for each in job.roles if each["name"] == role)


def _labels(jobs: Iterable[Job]) -> dict[UUID, Mapping[str, Mapping[str, str]]]:
    attempts = {job.uid: job.attempt for job in jobs}
    rows = Work.objects.filter(job_uid__in=attempts, node_labels__isnull=False).order_by()
    works = rows.values_list("job_uid", "attempt", "node_labels")
    return {uid: labels or {} for uid, attempt, labels in works if attempts[uid] == attempt}


def _held(jobs: Iterable[Job]) -> Mapping[UUID, _Places]:
    rows = Hold.objects.filter(job_uid__in=[job.uid for job in jobs], released_at__isnull=True).order_by()
    held: dict[UUID, _Places] = defaultdict(list)
    for uid, cluster, nodes in rows.values_list("job_uid", "cluster", "nodes"):
        held[uid] += [(cluster, name, amounts.get(GPU, 0)) for amounts, names in nodes for name in names]
    return held


def _bound(jobs: Iterable[Job]) -> Mapping[UUID, _Places]:
    requests = {job.uid: {role["name"]: role["request"] for role in job.roles} for job in jobs}
    rows = Pod.objects.filter(job_uid__in=requests, phase__in=snapshot.LIVE).exclude(node="").order_by()
    bound: dict[UUID, _Places] = defaultdict(list)
    for uid, cluster, role, node in rows.values_list("job_uid", "cluster", "role", "node"):
        bound[uid].append((cluster, node, requests[uid].get(role, {}).get(GPU, 0)))
    return bound


def _by_flavor(places: _Places, flavors: Flavors) -> Counter[str]:
    used = Counter[str]()
    rows: Any = Node.objects.filter(name__in={name for _, name, _ in places}).order_by()
    labels = {(cluster, name): stated for cluster, name, stated in rows.values_list("cluster", "name", "labels")}
    for cluster, name, gpus in places:
        used[node_flavor(flavors, labels.get((cluster, name), {}))] += gpus
    return used
