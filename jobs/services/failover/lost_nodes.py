"""Which nodes of a cluster are lost: their member has said for a while that they are not ready. Reads rows only.

If more than half of the nodes are not ready at once, they are more likely cut off from the control plane of their cluster, and
none counts as lost. Of a cluster that does not answer nothing is known, and time without observation does not count.
"""

from collections.abc import Mapping
from datetime import datetime

from django.conf import settings

from fleet.models import Cluster, Node

_UNREACHABLE = "node.kubernetes.io/unreachable"


def of(cluster: Cluster, now: datetime) -> Mapping[str, bool]:
    """The lost nodes by name, and whether nothing is heard from their kubelets: those end no pod."""
    if cluster.state != Cluster.State.READY:
        return {}
    rows = Node.objects.filter(cluster=cluster).order_by()
    down = list(rows.filter(ready=False).values_list("name", "not_ready_since", "taints"))
    if not down or 2 * len(down) > rows.count():
        return {}
    least = settings.CONVOY_FAILOVER.lost_node_s
    return {
        name: any(taint.get("key") == _UNREACHABLE for taint in taints)
        for name, since, taints in down
        if since is not None and cluster.freshness.observed_for(since, now).total_seconds() >= least
    }
