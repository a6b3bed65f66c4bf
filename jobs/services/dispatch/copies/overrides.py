"""The manifest of one copy: the job's manifest after the override policies that match its cluster.

Override policies must not change the gang's roles, replicas or requests: the placement and the quota charge depend on them.
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
from jobs.kinds import device_claims
from jobs.kinds.base import Kind
from jobs.models import Job, Policy


def manifest(job: Job, kind: Kind, cluster: Cluster) -> tuple[Manifest, list[str]]:
    """The manifest to send, and the names of the policies that were applied. Raises `CannotOverride`."""
    policies = [
        Override(r.namespace, r.name, overrides.parse_override_policy(r.manifest, snapshot.known_kinds()))
        for r in _STORED.objects(namespace=job.namespace)
    ]
    if not policies:
        return job.manifest, []
    body, applied = overridden(job.manifest, policies, snapshot.member_of(cluster), kind.templates)
    reading = device_claims.read(kind, body)
    if reading.faults:
        message = "; ".join(f"{fault.field} {fault.detail}" for fault in reading.faults[:3])
        raise CannotOverride(f"{', '.join(applied)} would make it an invalid {job.kind}: {message}")
    before, after = _requests(job.roles), {role.name: (role.replicas, role.request) for role in reading.roles}
    if before != after:
        name = next(iter(before.keys() ^ after.keys() or {n for n in before if before[n] != after[n]}))
        message = f"{', '.join(applied)} would change the replicas or requests of role {name}"
        raise CannotOverride(f"{message}, for which the cluster was chosen")
    return body, applied


def _stored(param: Param) -> QuerySet[Policy]:
    return Policy.objects.filter(Q(namespace="") | Q(namespace=param("namespace", TEXT)), kind__in=overrides.KINDS)


_STORED = prepared.Rows(_stored)


def _requests(roles: list[Mapping[str, Any]]) -> dict[str, tuple[int, Mapping[str, int]]]:
    return {role["name"]: (role["replicas"], role["request"]) for role in roles}
