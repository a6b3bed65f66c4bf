"""Where a gang goes: filters, then the *Aggregate* fit, then a score, with a verdict for every cluster looked at.

Aggregate fit is the seed's rule with reservation off: the sum of free over all nodes holds the sum asked, holds
subtracted; plus the largest pod of every role must fit the freest node, so that nonsense is never accepted. A sum does
not see fragmentation, so the emptier cluster is preferred: there the member's own scheduler has the most room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np

from jobs.core import reasons
from jobs.core.policy import Affinity
from jobs.core.reasons import Amounts, Code, Reason, Verdict
from jobs.core.taints import Taint, untolerated
from jobs.core.world import Axis, Cluster, Gang, Vector


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for the whole gang."""

    cluster: Cluster
    asked: Vector
    verdicts: tuple[Verdict, ...]
    """Every cluster looked at, the chosen one first."""


def find(gang: Gang, clusters: Sequence[Cluster], axis: Axis, now: datetime) -> Spot | Reason:
    """The best cluster of the first affinity term that has one, or the reason why there is none."""
    affinities = gang.policy.affinities if gang.policy else (Affinity(),)
    verdicts: dict[str, Verdict] = {}
    for affinity in affinities:
        for cluster in clusters:
            if cluster.name not in verdicts or verdicts[cluster.name].code is Code.NOT_SELECTED:
                verdicts[cluster.name] = look(gang, cluster, affinity, axis, now)
        ranked = sorted(verdicts.values(), key=lambda v: (not v.fits, -v.score, v.cluster))
        if ranked and ranked[0].fits:
            chosen = next(c for c in clusters if c.name == ranked[0].cluster)
            return Spot(chosen, axis.vector(gang.total), tuple(ranked))
    return reasons.no_cluster_fits(sorted(verdicts.values(), key=lambda v: v.cluster))


def look(gang: Gang, cluster: Cluster, affinity: Affinity, axis: Axis, now: datetime) -> Verdict:
    """One gang on one cluster: the first filter that says no, else the fit."""
    refusal = refused(gang, cluster, affinity, now)
    if refusal is not None:
        return Verdict(cluster.name, *refusal)
    short = _short(gang.total, cluster.free, axis)
    if short:
        return Verdict(cluster.name, Code.NOT_ENOUGH_FREE, _told_short(short, gang, cluster, axis), short)
    for role, _, request in gang.roles:
        if not _some_node_holds(request, cluster, axis):
            return Verdict(cluster.name, Code.NO_NODE_FOR_POD, _told_node(role, request, cluster, axis))
    return Verdict(cluster.name, Code.FITS, "fits", score=_score(gang, cluster, axis))


class Candidate(Protocol):
    """What the filters look at of a cluster."""

    @property
    def name(self) -> str: ...
    @property
    def ready(self) -> bool: ...
    @property
    def cordoned(self) -> bool: ...
    @property
    def synced(self) -> bool: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def places(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> tuple[Taint, ...]: ...
    def serves(self, api_version: str, kind: str) -> bool: ...


def refused(gang: Gang, cluster: Candidate, affinity: Affinity, now: datetime) -> tuple[Code, str] | None:
    """The first filter that says no at this moment, whatever is free."""
    if (barred_by := barred(gang, cluster, affinity)) is not None:
        return barred_by
    if (until := gang.excluded.get(cluster.name)) is not None and until > now:
        return Code.FAILED_HERE, f"is excluded until {until:%H:%M:%S} UTC: the job failed there"
    return None


def barred(gang: Gang, cluster: Candidate, affinity: Affinity) -> tuple[Code, str] | None:
    """The first filter that says no to every gang of this policy and kind."""
    tolerations = gang.policy.tolerations if gang.policy else ()
    if not affinity.allows(cluster.name, cluster.labels, cluster.places):
        return Code.NOT_SELECTED, "is not selected by the policy's clusterAffinity"
    if cluster.cordoned:
        return Code.CORDONED, "is cordoned"
    if not cluster.ready:
        return Code.NOT_READY, "is not ready"
    if (taint := untolerated(cluster.taints, tolerations)) is not None:
        return Code.UNTOLERATED_TAINT, f"has the taint {taint}, which the policy does not tolerate"
    if not cluster.synced:
        return Code.CAPACITY_UNKNOWN, "has not told its capacity yet"
    if not cluster.serves(gang.api_version, gang.kind):
        return Code.KIND_NOT_SERVED, f"does not serve {gang.api_version} {gang.kind}"
    return None


def _short(total: Amounts, free: Vector, axis: Axis) -> dict[str, int]:
    short = {}
    for resource, asked in total.items():
        have = max(int(free[axis.index[resource]]), 0) if resource in axis.index else 0
        if asked > have:
            short[resource] = asked - have
    return short


def _told_short(short: Amounts, gang: Gang, cluster: Cluster, axis: Axis) -> str:
    told = []
    for resource, missing in short.items():
        have = gang.total[resource] - missing
        told.append(
            f"{reasons.amount(resource, missing)} (asked {reasons.amount(resource, gang.total[resource])},"
            f" free {reasons.amount(resource, have)})"
        )
    never = any(gang.total[r] > _capacity(cluster, axis, r) for r in short)
    return f"is short of {', '.join(told)}" + (" even when empty" if never else "")


def _capacity(cluster: Cluster, axis: Axis, resource: str) -> int:
    return int(cluster.capacity[axis.index[resource]]) if resource in axis.index else 0


def _some_node_holds(request: Amounts, cluster: Cluster, axis: Axis) -> bool:
    if not len(cluster.nodes):
        return False
    return bool((cluster.nodes >= axis.vector(request)).all(axis=1).any())


def _told_node(role: str, request: Amounts, cluster: Cluster, axis: Axis) -> str:
    best = {r: int(cluster.nodes[:, axis.index[r]].max(initial=0)) for r in request if r != "pods"}
    asked = {r: v for r, v in request.items() if r != "pods"}
    return f"has no node for one {role} pod of {reasons.amounts(asked)}: the most free on any node is {reasons.amounts(best)}"


def _score(gang: Gang, cluster: Cluster, axis: Axis) -> float:
    """The share left free of what the gang asks, of the scarcest resource: 0 (full after it) to 1 (empty)."""
    indices = [axis.index[r] for r, asked in gang.total.items() if asked]
    asked = axis.vector(gang.total)[indices]
    left = (cluster.free[indices] - asked) / np.maximum(cluster.capacity[indices], 1)
    return float(left.min()) if len(indices) else 0.0
