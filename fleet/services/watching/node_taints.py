"""Taints the nodes that are excluded for everyone in their member, where the cluster asks for it, and takes them off again.

The ledger says what is to be; the watch says what is. The difference is carried out for one cluster at a time, outside of any
transaction, so that a process may die at any line: the next look finds what is left. Only the taint with Convoy's own key is
touched, in the version of the node that was read, so that no taint of others is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, TextField
from django.db.models.functions import Cast
from structlog import get_logger

from fleet.changes import events
from fleet.core.members.health import State
from fleet.core.node_exclusions import TAINT, TAINT_NODES
from fleet.kube.resources import NODES
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberError, MemberMissing
from fleet.models import Cluster, Node
from fleet.services.clusters import clusters, node_exclusions
from fleet.services.members import member_clients

log = get_logger(__name__)

_TERM = timedelta(minutes=1)
"""A cluster that was asked and was not done with is asked again after this."""
_REFUSED = timedelta(minutes=10)
"""After a member that does not allow it."""
_MOST = 100
"""Nodes of a cluster that one visit changes."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Change:
    node: str
    reason: str
    """Value of the taint; empty: it is taken off."""


def request_due(now: datetime) -> None:
    """Enqueues a visit of each cluster whose taints differ from the ledger, if it answers and none is under way."""
    asking = Cluster.objects.filter(annotations__has_key=TAINT_NODES, state=State.READY).filter(_is_due(now))
    for cluster in asking.order_by("pk"):
        if differences(cluster):
            events.enqueue("fleet.taint_nodes", cluster.pk)


def visit(pk: int, now: datetime) -> int:
    """Brings the taints of the cluster's nodes in line with the ledger. Returns how many nodes it has changed."""
    cluster = Cluster.objects.filter(_is_due(now), pk=pk).first()
    if cluster is None or not _claim(cluster, now):
        return 0
    changed, next_at = 0, None
    try:
        client = member_clients.client(cluster)
        for change in differences(cluster)[:_MOST]:
            changed += _write(client, change)
    except MemberDenied:
        next_at = now + _REFUSED
        message = "excluded nodes are not tainted: the fleet's account there needs the verbs get and patch on nodes"
        events.record(clusters.change(cluster), "NodesNotTainted", message, now, warning=True)
    except MemberError as e:
        next_at = now + _TERM
        log.warning("nodes not tainted", cluster=cluster.name, error=str(e))
    Cluster.objects.filter(pk=pk).update(node_taints_due_at=next_at)
    return changed


def differences(cluster: Cluster) -> list[Change]:
    """The nodes of the cluster whose taint, as last seen, is not what the ledger says."""
    is_wanted = cluster.annotations.get(TAINT_NODES) == "true"
    rows = node_exclusions.in_force().filter(cluster=cluster, job_uid=None).order_by()
    wanted = dict(rows.values_list("node", "reason")) if is_wanted else {}
    nodes = Node.objects.filter(cluster=cluster).alias(text=Cast("taints", TextField()))
    nodes = nodes.filter(Q(name__in=wanted) | Q(text__contains=TAINT)).order_by("name")
    return [
        Change(name, wanted.get(name, ""))
        for name, taints in nodes.values_list("name", "taints")
        if [taint for taint in taints if taint.get("key") == TAINT] != _taints(wanted.get(name, ""))
    ]


def _is_due(now: datetime) -> Q:
    """A time farther away than any wait is of a clock that was wrong."""
    too_far = Q(node_taints_due_at__gt=now + 2 * _REFUSED)
    return Q(node_taints_due_at=None) | Q(node_taints_due_at__lte=now) | too_far


def _claim(cluster: Cluster, now: datetime) -> bool:
    mine = Cluster.objects.filter(pk=cluster.pk, node_taints_due_at=cluster.node_taints_due_at)
    return mine.update(node_taints_due_at=now + _TERM) == 1


def _taints(reason: str) -> list[Mapping[str, str]]:
    return [{"key": TAINT, "value": reason, "effect": "NoSchedule"}] if reason else []


def _write(client: MemberClient, change: Change) -> bool:
    """Returns whether the node had another taint. A node that is gone needs none."""
    path = NODES.path(name=change.node)
    for _ in range(_TRIES):
        try:
            node = client.get(path)
            before = list((node.get("spec") or {}).get("taints") or [])
            after = [*[taint for taint in before if taint.get("key") != TAINT], *_taints(change.reason)]
            if after == before:
                return False
            checked = {field: node["metadata"][field] for field in ("uid", "resourceVersion")}
            client.merge_patch(path, {"metadata": checked, "spec": {"taints": after or None}})
            return True
        except MemberMissing:
            return False
        except MemberChanged:
            continue
    return False  # it is written all the time; the next look finds it
