"""Where the data of the volume claims of waiting jobs is, for the scheduler: on which clusters, reached from which nodes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobs.core.gang import requirements
from jobs.core.gang.requirements import Terms
from jobs.models import ClaimLocation

Locations = Mapping[str, tuple[tuple[str, Terms], ...]]
"""Claim, ``namespace/name`` → the clusters that have its data, each with the nodes that reach it; no terms: all."""
_CLAIMS_NAMED = 500
"""Of more claims than these the locations of all are read."""


def claim_locations(jobs: Iterable[Mapping[str, Any]]) -> Locations:
    """Of the claims that these jobs mount."""
    names = {name for job in jobs for name in mounted(job["roles"])}
    if not names:
        return {}
    rows = ClaimLocation.objects.order_by("cluster__name")
    if len(names) <= _CLAIMS_NAMED:
        rows = rows.filter(name__in=names)
    locations: dict[str, tuple[tuple[str, Terms], ...]] = {}
    for namespace, name, cluster, terms in rows.values_list("namespace", "name", "cluster__name", "node_terms"):
        claim, at = f"{namespace}/{name}", (cluster, requirements.stored_terms(terms or ()))
        locations[claim] = (*locations.get(claim, ()), at)
    return locations


def volumes_of(job: Mapping[str, Any], where: Locations) -> dict[str, tuple[tuple[str, Terms], ...]]:
    """By role the claims that its pods mount whose volumes are not reached from every node, with those that reach them."""
    volumes: dict[str, tuple[tuple[str, Terms], ...]] = {}
    for role in job["roles"]:
        claims = [f"{job['namespace']}/{name}" for name in role.get("mounts", ())]
        terms = [(claim, [terms for _, terms in where.get(claim, ())]) for claim in claims]
        volumes[role["name"]] = tuple((claim, sum(some, ())) for claim, some in terms if some and all(some))
    return {role: of_role for role, of_role in volumes.items() if of_role}


def mounted(roles: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    """The names of the volume claims that its pods mount."""
    return sorted({name for role in roles for name in role.get("claims", ())})


def clusters_of(locations: Iterable[tuple[str, Terms]]) -> tuple[str, ...]:
    return tuple(cluster for cluster, _ in locations)
