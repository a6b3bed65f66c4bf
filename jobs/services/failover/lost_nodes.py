"""Which nodes of a cluster are lost: their member has said for a while that they are not ready. Reads rows only.

If more than half of the nodes are not ready at once, they are more likely cut off from the control plane of their cluster, and
none counts as lost. Of a cluster that does not answer nothing is known, time without observation does not count, and nothing is
decided by what was observed a while ago.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Q

from fleet.core.members.freshness import CURRENT
from fleet.models import Cluster, Node

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class LostNode:
    since: datetime
    """When it was first seen not to be ready."""
    is_silent: bool
    """Nothing is heard from its kubelet, which ends no pod then."""

    @property
    def taint(self) -> str:
        """The key of the taint for which its member evicts pods from it."""
        return UNREACHABLE if self.is_silent else NOT_READY


def of(cluster: Cluster, now: datetime) -> Mapping[str, LostNode]:
    """By name."""
    if cluster.state != Cluster.State.READY or cluster.freshness.is_stale(now, CURRENT):
        return {}
    down = not_ready(cluster)
    if not down or are_most(cluster):
        return {}
    observed = {name: cluster.freshness.observed_for(node.since, now) for name, node in down.items()}
    least = timedelta(seconds=settings.CONVOY_FAILOVER.lost_node_s)
    return {name: node for name, node in down.items() if observed[name] >= least}


def not_ready(cluster: Cluster) -> Mapping[str, LostNode]:
    """By name, for however short. A row without a time is of a former version, and gets one when it is listed again."""
    rows = Node.objects.filter(cluster=cluster, ready=False, not_ready_since__isnull=False).order_by("name")
    return {
        name: LostNode(since, any(taint.get("key") == UNREACHABLE for taint in taints))
        for name, since, taints in rows.values_list("name", "not_ready_since", "taints")
        if since is not None
    }


def are_most(cluster: Cluster) -> bool:
    """Whether more than half of its nodes are not ready."""
    counts = Node.objects.filter(cluster=cluster).aggregate(all=Count("pk"), down=Count("pk", filter=Q(ready=False)))
    return 2 * int(counts["down"]) > int(counts["all"])
