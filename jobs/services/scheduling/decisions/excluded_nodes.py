"""The nodes that are excluded when a plan is written: a gang on one of them is planned again, the others are kept off them.

The member's scheduler chooses nodes by itself, also for a pod that is replaced later, so each copy says where it must not go.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Q

from fleet.db import prepared
from fleet.db.prepared import UID
from fleet.services.clusters import node_exclusions
from jobs.core.admission.plans import Placed, Placement

_EVERYONE = ""
_IN_FORCE = prepared.Rows(
    lambda param: (
        node_exclusions.in_force()
        .filter(Q(job_uid__isnull=True) | Q(job_uid__in=param("uids", UID)))
        .order_by()
        .values_list("cluster_id", "job_uid", "node", "hostname")
    )
)


@dataclass(slots=True)
class Exclusions:
    """Hostnames by node name, for each cluster and job; the job is empty for everyone."""

    _known: dict[tuple[int, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, cluster: int, job: UUID | None, node: str, hostname: str) -> None:
        self._known[cluster, str(job) if job else _EVERYONE][node] = hostname

    def allow(self, placed: Placed) -> bool:
        """Whether no pod was planned onto a node that is excluded by now."""
        return all(self._allows(share, placed.gang.uid) for share in placed.placement.shares)

    def hostnames(self, cluster: int, job: object) -> list[str] | None:
        """The hostnames that the job's pods are kept off there; None: no node is excluded."""
        return sorted(set(self._nodes(cluster, str(job)).values())) or None

    def _allows(self, share: Placement, job: str) -> bool:
        nodes = self._nodes(share.cluster_id, job)
        return not nodes or not any(name in nodes for _, load in share.assignment.loads for name in load.names)

    def _nodes(self, cluster: int, job: str) -> dict[str, str]:
        return {**self._known.get((cluster, _EVERYONE), {}), **self._known.get((cluster, job), {})}


def load(uids: Iterable[UUID]) -> Exclusions:
    """What is excluded for these jobs, and for everyone."""
    exclusions = Exclusions()
    for row in _IN_FORCE.values(uids=list(uids)):
        exclusions.add(*row)
    return exclusions
