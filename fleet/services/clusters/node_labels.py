"""Labels of a member's node, written through the fleet: how GPUs are handed out there is said by one.

The member's own API has the last word. The node's row follows when the watcher sees the change.
"""

from collections.abc import Mapping
from datetime import datetime

from fleet.changes import events
from fleet.errors import Conflict, FieldFault, Forbidden, InvalidInput, NotFound, Unavailable
from fleet.kube import names
from fleet.kube.resources import NODES
from fleet.member.errors import MemberAway, MemberDenied, MemberMissing, MemberRefused
from fleet.models import Cluster
from fleet.services.clusters import clusters
from fleet.services.members import member_clients

OWN = ("convoy.dev/", "kubernetes.io/hostname")
"""Labels of Convoy, and the one by which pods are kept to a node."""


def change(
    cluster: Cluster, node: str, labels: Mapping[str, str | None], *, overwrite: bool, by: str, now: datetime
) -> dict[str, str]:
    """Sets the labels, removes those that are None, and returns all labels of the node.

    Without ``overwrite`` a label that has another value is left, and the change refused.
    """
    _require_valid(labels)
    client, path = member_clients.client(cluster), NODES.path(name=node)
    try:
        before = client.get(path)
        has = (before["metadata"].get("labels") or {}) if labels else {}
        kept = [key for key, value in labels.items() if value is not None and has.get(key, value) != value]
        if kept and not overwrite:
            raise Conflict(f"{kept[0]} of node {node} is {has[kept[0]]!r} already: overwrite it to change it")
        checked = {field: before["metadata"][field] for field in ("uid", "resourceVersion")}
        after = client.merge_patch(path, {"metadata": {**checked, "labels": dict(labels)}})
    except MemberMissing as e:
        raise NotFound(f"cluster {cluster.name} has no node {node}") from e
    except MemberDenied as e:
        detail = "the fleet's account there needs the verbs get and patch on nodes"
        raise Forbidden(f"cluster {cluster.name} does not allow to label its node {node}: {detail}") from e
    except MemberRefused as e:
        raise Conflict(f"cluster {cluster.name} refused to label its node {node}: {e.message}") from e
    except MemberAway as e:
        raise Unavailable(f"cluster {cluster.name} does not answer: {e}") from e
    events.record(clusters.change(cluster), "NodeLabelsChanged", f"{by} changed labels of node {node}", now)
    return dict(after["metadata"].get("labels") or {})


def _require_valid(labels: Mapping[str, str | None]) -> None:
    faults = [
        FieldFault(f"labels.{key}", detail)
        for key, value in labels.items()
        if (detail := names.pair_fault(key, value or ""))
    ]
    faults += [
        FieldFault(f"labels.{key}", "is kept by Convoy or the node itself") for key in labels if key.startswith(OWN)
    ]
    if faults:
        raise InvalidInput("; ".join(f"{fault.field} {fault.detail}" for fault in faults), tuple(faults))
