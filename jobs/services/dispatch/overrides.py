"""The manifest of one copy: the job's own, with the stored override policies carried out for its cluster.

What the gang asks must come out as it went in: where the job fits was decided by that, and its leaf was charged for it.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet

from fleet.db import prepared
from fleet.db.prepared import TEXT, Param
from fleet.models import Cluster
from jobs import snapshot
from jobs.core.manifest_fields import Manifest
from jobs.core.policies import overrides
from jobs.core.policies.overrides_apply import CannotOverride, Override, overridden
from jobs.kinds.base import Kind
from jobs.models import Job, Policy


def manifest(job: Job, kind: Kind, cluster: Cluster) -> tuple[Manifest, list[str]]:
    """What is to be sent, and the policies that had a say in it; raises `CannotOverride`."""
    policies = [
        Override(r.namespace, r.name, overrides.parse_override_policy(r.manifest, snapshot.known_kinds()))
        for r in _STORED.objects(namespace=job.namespace)
    ]
    if not policies:
        return job.manifest, []
    made, said = overridden(job.manifest, policies, snapshot.member_of(cluster), kind.templates)
    reading = kind.read(made)
    if reading.faults:
        message = "; ".join(f"{fault.field} {fault.detail}" for fault in reading.faults[:3])
        raise CannotOverride(f"{', '.join(said)} would make it no valid {job.kind}: {message}")
    if (asked := _asked(job.roles)) != (now := {role.name: (role.replicas, role.request) for role in reading.roles}):
        name = next(iter(asked.keys() ^ now.keys() or {n for n in asked if asked[n] != now[n]}))
        raise CannotOverride(f"{', '.join(said)} would change what role {name} asks: its place was chosen by that")
    return made, said


def _stored(param: Param) -> QuerySet[Policy]:
    return Policy.objects.filter(Q(namespace="") | Q(namespace=param("namespace", TEXT)), kind__in=overrides.KINDS)


_STORED = prepared.Rows(_stored)


def _asked(roles: list[Mapping[str, Any]]) -> dict[str, tuple[int, Mapping[str, int]]]:
    return {role["name"]: (role["replicas"], role["request"]) for role in roles}
