"""Events about objects in members for which there is no row here.

They are kept under the object's own namespace, so that its readers see them and others who see the cluster do not: the name
of an object says what a team works on. The events of the cluster have them through their source.
"""

from datetime import datetime
from uuid import uuid5

from fleet import queries
from fleet.changes import events, journal
from fleet.models import Cluster
from fleet.services.clusters import clusters


def record(cluster: Cluster, kind: str, namespace: str, name: str, reason: str, message: str, now: datetime) -> None:
    """A warning. One about an object without a namespace is the cluster's own."""
    regarding = clusters.change(cluster)
    if namespace:
        # Not the object's own uid: the operator of the member chooses it, and it could be that of a job of the fleet.
        uid = str(uuid5(cluster.uid, f"{kind} {namespace}/{name}"))
        regarding = journal.Change(kind[:63], namespace[:63], name[:253], uid, journal.Action.MODIFIED)
    events.record(regarding, reason, message, now, warning=True, source=queries.source_of(cluster.name))
