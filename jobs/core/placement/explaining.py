"""Why a gang goes to a cluster, or cannot: per cluster the filter that said no, or what is short, where, and whether ever.

Only looks; asked for gangs that wait and by people, so it may take its time. What is text is computed from the same counts
the decision is made from.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

import numpy as np

from jobs.core import reasons
from jobs.core.gang import requirements
from jobs.core.gang.requirements import GangRequirements, NodeClass
from jobs.core.gang.types import Gang
from jobs.core.placement import excluded_nodes, filters, scoring
from jobs.core.placement.engine import Engine, Mask
from jobs.core.placement.nodes.capacity_index import Bucket, Fleet, Site
from jobs.core.placement.nodes.fit import Prepared, place_gang
from jobs.core.placement.nodes.node_selection import Group
from jobs.core.placement.nodes.packing import Unsure
from jobs.core.policies.propagation import Affinity
from jobs.core.reasons import Amounts, Code, Detail, Verdict
from jobs.core.topology.network import LEVELS


class Cause(StrEnum):
    """What stands in the way, finer than the code."""

    NONE = "None"
    FILTER = "Filter"
    NO_NODE_ALLOWED = "NoNodeAllowed"
    """Labels, affinity, taints or readiness keep its pods off every node."""
    NODE_TOO_SMALL = "NodeTooSmall"
    """No node is large enough for one pod, even empty."""
    SHORT = "Short"
    """The sum of what is free does not suffice."""
    FRAGMENTED = "Fragmented"
    """The sum suffices, but not where it lies."""
    NOT_TOGETHER = "NotTogether"
    """Every role fits alone, not all at once."""
    NO_DOMAIN = "NoDomain"
    """The cluster holds it, but no single network domain does."""
    KEPT = "Kept"
    """Nodes that would hold it are kept for a big gang that has waited long."""
    EXCLUDED = "Excluded"
    """Nodes that would hold it are excluded for a while, because they failed."""
    UNSURE = "Unsure"
    """Neither a packing nor a proof that there is none was found within the effort."""


@dataclass(frozen=True, slots=True)
class Look:
    """One cluster looked at."""

    cluster: str
    code: Code
    cause: Cause
    message: str
    short: Amounts = field(default_factory=dict)
    role: str = ""
    nodes: str = ""
    """The class of nodes it is about: of those that may run the pods, the most frequent."""
    never: bool = False
    """Proven: not even when the cluster is empty."""
    term: int = 0
    """Which of the policy's ordered cluster affinities lets it in."""
    score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        detail = Detail(self.cause, self.role, self.nodes, self.never, self.term, self.parts)
        return Verdict(self.cluster, self.code, self.message, self.short, self.score, detail)


def explain_clusters(engine: Engine, gang: Gang, demand: GangRequirements, now: datetime) -> tuple[Look, ...]:
    """Every cluster: those that hold it first, as they would be chosen; then the others by name."""
    prepared = engine.prepared(demand)
    enough = engine.holding(prepared, gang.fit)
    looks = [_explain_cluster(engine, gang, prepared, name, now, enough) for name in sorted(engine.members)]
    return tuple(sorted(looks, key=lambda look: (look.code is not Code.FITS, look.term, -look.score, look.cluster)))


def nearest_to_fit(looks: Sequence[Look]) -> Look | None:
    """The cluster that is short of least, of those that could hold the gang one day."""
    hopeful = [look for look in looks if look.short and not look.never]
    return min(hopeful, key=lambda look: (max(look.short.values()), look.cluster), default=None)


def never_fits(looks: Sequence[Look]) -> bool:
    """No cluster that its policy allows could hold it even empty."""
    selected = [look for look in looks if look.code is not Code.NOT_SELECTED]
    return bool(selected) and all(look.never for look in selected)


def _explain_cluster(engine: Engine, gang: Gang, prepared: Prepared, cluster: str, now: datetime, enough: Mask) -> Look:
    member, site = engine.members[cluster], engine.fleet.sites[cluster]
    affinities = gang.policy.affinities if gang.policy else (Affinity(),)
    refusals = [filters.current_refusal(gang, member, affinity, now) for affinity in affinities]
    if all(refusals):
        code, message = next(
            (r for r in refusals if r and r[0] is not Code.NOT_SELECTED), refusals[0] or (Code.NOT_READY, "")
        )
        return Look(cluster, code, Cause.FILTER, message)
    aggregate = engine.aggregates(cluster, gang.fit)
    if not enough[site.index]:
        for obstacle in _obstacles(engine.fleet, site, prepared, aggregate=aggregate):
            return _with_exclusions(engine.fleet, site, prepared, obstacle)
    if not aggregate and (prepared.demand.within.required or not prepared.alike):
        try:
            if place_gang(engine.fleet, site, prepared) is None:
                return _with_exclusions(engine.fleet, site, prepared, _not_together(engine.fleet, site, prepared))
        except Unsure:
            text = "may hold it, but no way to pack its roles was found in reasonable time"
            return Look(cluster, Code.NO_NODE_FOR_POD, Cause.UNSURE, text)
    index = np.array([site.index])
    parts = engine.shares(prepared, index)
    each = {name: round(float(np.ravel(part)[0]), 4) for name, part in parts.items()}
    score = float(scoring.weighted_total(parts, engine.weights_of(gang))[0])
    return Look(cluster, Code.FITS, Cause.NONE, "fits", term=refusals.index(None), score=score, parts=each)


def _with_exclusions(fleet: Fleet, site: Site, gang: Prepared, look: Look) -> Look:
    """The same with the nodes that are excluded; if the gang would fit with them, they are what stands in the way.

    Leases end: what fits nowhere but for them is not said to fit never.
    """
    look = _with_volumes(fleet, site, gang, look)
    nodes = excluded_nodes.excluded(fleet, site, gang)
    if not nodes:
        return look
    look = replace(look, message=f"{look.message}; {excluded_nodes.words(nodes)}", never=False)
    if not excluded_nodes.would_suffice(fleet, site, gang):
        return look
    short = excluded_nodes.missing(fleet, site, gang) or look.short
    return replace(look, code=Code.NODES_EXCLUDED, cause=Cause.EXCLUDED, short=short)


def _with_volumes(fleet: Fleet, site: Site, gang: Prepared, look: Look) -> Look:
    """``...; the volume of claim default/ckpt is reached from 1 of its 4 nodes``, which the gang has to share."""
    reach: dict[str, tuple[int, int]] = {}
    for group in gang.groups:
        for claim, terms in group.shape.ask.volumes:
            usable = [b for b in site.buckets if b.names and _node_class_of(fleet, b).usable]
            reaching = sum(len(b.names) for b in usable if requirements.holds(terms, _node_class_of(fleet, b)))
            reach[claim] = reaching, sum(len(b.names) for b in usable)
    words = [
        f"the volume of claim {claim} is reached from {n} of its {of} nodes"
        for claim, (n, of) in reach.items()
        if n < of
    ]
    return replace(look, message="; ".join([look.message, *words])) if words else look


def _not_together(fleet: Fleet, site: Site, gang: Prepared) -> Look:
    if gang.demand.within.required:
        return _no_domain(fleet, site, gang)
    text = "holds each of its roles alone, but not all of them together"
    return Look(site.name, Code.NO_NODE_FOR_POD, Cause.NOT_TOGETHER, text)


def _no_domain(fleet: Fleet, site: Site, gang: Prepared) -> Look:
    """``holds it, but no asw alone: 4 worker pods of 1 nvidia.com/gpu are asked, the best one, r1, holds 2``."""
    level = gang.demand.within.level
    level_name = "network domain" if level is None else LEVELS[level]
    group = min(gang.groups, key=lambda g: (-g.worth * g.need, g.column))
    role = gang.demand.parts[group.parts[0]].role
    open_to = [(path, domain) for path, domain in site.domains.items() if len(path) > (level or 0) and path[-1]]
    slots = {path: int(fleet.near[domain, 2 * group.column]) for path, domain in open_to}
    if not slots:
        text = f"holds it, but none of its nodes has a label that says which {level_name} it is in, "
        text += "and its topology is required"
        return Look(site.name, Code.NO_NODE_FOR_POD, Cause.NO_DOMAIN, text, role=role)
    best = min(slots, key=lambda path: (-slots[path], path))
    missing = max(group.need - slots[best], 0)
    request = dict(group.shape.ask.request)
    tight = max(request, key=lambda r: (request[r] * fleet.states.weight(r), r))
    text = (
        f"holds it, but no {level_name} alone: {group.need} {role} pods of {_requests_text(group)} are asked,"
        f" the best one, {best[-1]}, holds {min(slots[best], group.need)}"
    )
    short = {tight: missing * request[tight]} if missing else {}
    return Look(site.name, Code.NO_NODE_FOR_POD, Cause.NO_DOMAIN, text, short, role)


def _obstacles(fleet: Fleet, site: Site, gang: Prepared, *, aggregate: bool) -> Iterator[Look]:
    """Reasons in the order in which they are reported; the first counts."""
    short = _missing_now(fleet, site, gang)
    for group in gang.groups:
        allowed = [b for b in site.buckets if b.names and group.shape.ask.refusal(_node_class_of(fleet, b)) is None]
        role = gang.demand.parts[group.parts[0]].role
        if not allowed:
            yield Look(
                site.name,
                Code.NO_NODE_FOR_POD,
                Cause.NO_NODE_ALLOWED,
                _text_refusals(fleet, site, group, role),
                short,
                role,
            )
            return
        nodes, largest = _frequent(fleet, allowed), _when_empty(fleet, allowed, group)
        if not max(largest.values()):
            text = f"has no node large enough for one {role} pod of {_requests_text(group)}, even when empty"
            yield Look(site.name, Code.NO_NODE_FOR_POD, Cause.NODE_TOO_SMALL, text, short, role, nodes, never=True)
            return
        empty = sum(largest[b.state.kind] * len(b.names) for b in allowed)
        lost = not aggregate and empty < group.need
        if lost or (short and (beyond := _missing_when_empty(fleet, site, gang))):
            cause = Cause.SHORT if short else Cause.FRAGMENTED
            code = Code.NOT_ENOUGH_FREE if short else Code.NO_NODE_FOR_POD
            text, missing = _text_empty_slots(group, role, empty) if lost else _text_beyond(gang, beyond)
            yield Look(site.name, code, cause, text, missing, role, nodes, never=True)
            return
        if short:
            yield Look(site.name, Code.NOT_ENOUGH_FREE, Cause.SHORT, _text_short(gang, short), short, role, nodes)
        slots = int(fleet.slots[site.index, 2 * group.column])
        if slots < (1 if aggregate else group.need):
            text, missing = _text_fragments(fleet, allowed, group, role, slots)
            yield Look(site.name, Code.NO_NODE_FOR_POD, Cause.FRAGMENTED, text, missing, role, nodes)


def _node_class_of(fleet: Fleet, bucket: Bucket) -> NodeClass:
    return fleet.states.classes[bucket.state.kind]


def _missing_now(fleet: Fleet, site: Site, gang: Prepared) -> dict[str, int]:
    """What the sum over the usable nodes lacks, promises without nodes counted."""
    missing = {}
    for resource, amount in gang.demand.total.items():
        index = fleet.states.index.get(resource)
        have = 0 if index is None else int(fleet.room[site.index, index] - fleet.promised[site.index, index])
        if amount > have:
            missing[resource] = amount - max(have, 0)
    return missing


def _missing_when_empty(fleet: Fleet, site: Site, gang: Prepared) -> dict[str, int]:
    """What the sum over the usable nodes lacks when nothing runs on them."""
    index = fleet.states.index
    have = {r: int(fleet.capacity[site.index, index[r]]) if r in index else 0 for r in gang.demand.total}
    return {r: amount - have[r] for r, amount in gang.demand.total.items() if amount > have[r]}


def _text_beyond(gang: Prepared, beyond: Amounts) -> tuple[str, Amounts]:
    """``is short of 16 nvidia.com/gpu even when empty (asked 48 nvidia.com/gpu, has 32 nvidia.com/gpu)``."""
    total = gang.demand.total
    text = ", ".join(
        f"{reasons.amount(r, missing)} even when empty"
        f" (asked {reasons.amount(r, total[r])}, has {reasons.amount(r, total[r] - missing)})"
        for r, missing in beyond.items()
    )
    return f"is short of {text}", beyond


def _text_empty_slots(group: Group, role: str, empty: int) -> tuple[str, Amounts]:
    """``holds 2 of 4 worker pods of 8 nvidia.com/gpu even when empty``."""
    request = dict(group.shape.ask.request)
    text = f"holds {empty} of {group.need} {role} pods of {_requests_text(group)} even when empty"
    devices = {r for r in request if "/" in r} or set(request) - {"pods"} or set(request)
    return text, {r: (group.need - empty) * request[r] for r in sorted(devices)}


def _text_short(gang: Prepared, short: Amounts) -> str:
    total = gang.demand.total
    return "is short of " + ", ".join(
        f"{reasons.amount(r, missing)} (asked {reasons.amount(r, total[r])}, free {reasons.amount(r, total[r] - missing)})"
        for r, missing in short.items()
    )


def _text_refusals(fleet: Fleet, site: Site, group: Group, role: str) -> str:
    """``has no node that may run worker pods: they lack the label ... (12 nodes); are not ready or cordoned (1 node)``."""
    counted: Counter[str] = Counter()
    for bucket in site.buckets:
        if bucket.names and (refusal := group.shape.ask.refusal(_node_class_of(fleet, bucket))):
            counted[refusal] += len(bucket.names)
    text = "; ".join(f"{why} ({n} node{'s' if n > 1 else ''})" for why, n in counted.most_common(3))
    return f"has no node that may run {role} pods: " + (f"they {text}" if text else "it has no nodes")


def _text_fragments(
    fleet: Fleet, allowed: list[Bucket], group: Group, role: str, slots: int
) -> tuple[str, dict[str, int]]:
    """``has 12 nvidia.com/gpu free, but at most 3 on a node: 2 worker pods of 8 nvidia.com/gpu are asked, 0 fit``."""
    request, states = dict(group.shape.ask.request), fleet.states
    tight = max(request, key=lambda r: (request[r] * states.weight(r), r))
    if tight in states.index:
        column = states.index[tight]
        each = [(int(states.free[b.state.row, column]), len(b.names)) for b in allowed]
        free, most = sum(f * n for f, n in each), max(f for f, _ in each)
    else:
        free = most = 0
    text = (
        f"has {reasons.amount(tight, free)} free, but at most {reasons.amount(tight, most)} on a node:"
        f" {group.need} {role} pods of {_requests_text(group)} are asked, {slots} fit"
    )
    return text, {tight: (group.need - slots) * request[tight]}


def _when_empty(fleet: Fleet, allowed: list[Bucket], group: Group) -> dict[int, int]:
    """Per node class, the pods that an empty node holds."""
    shortages = {}
    for kind in {bucket.state.kind for bucket in allowed}:
        allocatable = dict(fleet.states.classes[kind].allocatable)
        fits = min((allocatable.get(r, 0) // amount for r, amount in group.shape.ask.request), default=group.need)
        shortages[kind] = min(fits, 1) if group.shape.lone else fits
    return shortages


def _frequent(fleet: Fleet, buckets: list[Bucket]) -> str:
    counted: Counter[str] = Counter()
    for bucket in buckets:
        counted[str(_node_class_of(fleet, bucket))] += len(bucket.names)
    return min(counted, key=lambda name: (-counted[name], name))


def _requests_text(group: Group) -> str:
    return reasons.amounts({r: n for r, n in group.shape.ask.request if r != "pods"}) or "nothing"
