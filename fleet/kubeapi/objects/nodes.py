"""Nodes of all members, as what the fleet places gangs on. Read only: a node is its cluster's."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from fleet.changes.journal import Action, Entry
from fleet.core.members import hub_names
from fleet.core.members.hub_names import hub_name
from fleet.kube import quantities
from fleet.kube.discovery import Served
from fleet.kube.resources import NODES
from fleet.kube.server.kinds import Key, Object
from fleet.kube.tables import Column, at
from fleet.kubeapi.objects import members
from fleet.kubeapi.objects.kinds import Change, stamp
from fleet.kubeapi.objects.members import CLUSTER_COLUMN, MemberKind, is_stale, silence_message
from fleet.models import Node, NodeExclusion
from fleet.services.clusters import node_exclusions
from fleet.services.members import member_objects

_THEIRS = (
    "nodes are read only at the fleet: `convoy cluster cordon CLUSTER NODE` keeps pods off one,"
    " `convoy cluster drain CLUSTER NODE` has its jobs leave it;"
    " else change it in its cluster, with `kubectl --server .../clusters/NAME/proxy`"
)
_BYTES = ("memory", "ephemeral-storage", "hugepages-")


class Nodes(MemberKind):
    served = Served(NODES, ("no",))
    verbs = ("get", "list", "watch")
    follows = True  # the journal says of a new node as of a changed one that it was modified
    remedies: Mapping[str, str] = dict.fromkeys(("create", "delete", "deletecollection", "patch", "update"), _THEIRS)
    field_labels = frozenset({"spec.unschedulable"})
    order = ("cluster_id", "name")
    columns = (
        Column("Status", lambda shown, now: _status_word(shown)),
        CLUSTER_COLUMN,
        Column("Excluded", lambda shown, now: _exclusion_of(shown) or "<none>", wide=True),
        Column("Internal-IP", lambda shown, now: at(".status.addresses[0].address")(shown) or "<none>", wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        return Node.objects.all()

    def complete(self, rows: Iterable[Any]) -> Iterable[Any]:
        nodes = list(rows)
        excluded = node_exclusions.of_nodes(nodes)
        for node in nodes:
            node.exclusion = excluded.get((node.cluster_id, node.name))
        return nodes

    def position(self, key: Key) -> Sequence[object]:
        hub = key[1]
        name, cluster = hub_names.split(hub)
        if kept := hub_names.kept_of(hub):
            node = member_objects.node_of(hub)
            name = node.name if node else kept
        return members.cluster_id(cluster), name

    def changes_in(self, entries: Sequence[Entry]) -> list[Change]:
        """The journal line of a node has the cluster in place of a namespace, and the cluster's uid."""
        last = {(entry.namespace, entry.name): entry for entry in entries if entry.kind == self.name}
        wanted: dict[str, list[str]] = defaultdict(list)
        for cluster, name in last:
            wanted[cluster].append(name)
        shown = {
            (cluster, row.name): self.render(row)
            for cluster, names in wanted.items()
            for row in self.complete(
                member_objects.with_clusters(self.rows().filter(cluster__name=cluster, name__in=names), {})
            )
        }
        changes = []
        for (cluster, name), entry in last.items():
            action = Action.MODIFIED if (cluster, name) in shown else Action.DELETED
            uid = _uid(entry.object_uid, name)
            changes.append(Change(entry.version, action, "", hub_name(name, cluster), uid, shown.get((cluster, name))))
        changes += self.of_changed_clusters(entries, but={change.uid for change in changes})
        return sorted(changes, key=lambda change: change.version)

    def render(self, row: Node) -> Object:
        taints = [{part: str(value) for part, value in taint.items()} for taint in row.taints]
        spec = {"unschedulable": row.unschedulable, "taints": taints}
        labels = {key: str(value) for key, value in row.labels.items()}
        addresses = [{"type": "InternalIP", "address": row.address}] if row.address else []
        return {
            "apiVersion": "v1",
            "kind": NODES.kind,
            "metadata": members.head_of(row, _uid(str(row.cluster.uid), row.name), labels),
            "spec": {key: value for key, value in spec.items() if value},
            "status": {
                "allocatable": {name: _quantity(name, amount) for name, amount in row.allocatable.items()},
                "conditions": list(_conditions(row)),
                "addresses": [*addresses, {"type": "Hostname", "address": row.name}],
                "nodeInfo": _NODE_INFO,
            },
        }


_EXCLUDED = "Excluded"
"""Condition of a node that the ledger of faulty nodes takes out of the placement, for everyone."""
_NODE_INFO = dict.fromkeys(
    ("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
     "machineID", "operatingSystem", "osImage", "systemUUID"), ""
)  # fmt: skip
"""Typed clients insist on these."""


def _uid(cluster_uid: str, name: str) -> str:
    return str(uuid.uuid5(uuid.UUID(cluster_uid), name))


def _conditions(row: Node) -> Iterator[Object]:
    yield _readiness(row)
    exclusion: NodeExclusion | None = getattr(row, "exclusion", None)
    if exclusion is not None:
        words = node_exclusions.words(exclusion.until, exclusion.message)
        since = stamp(exclusion.since)
        yield {"type": _EXCLUDED, "status": "True", "reason": exclusion.reason, "message": words,
               "lastTransitionTime": since}  # fmt: skip


def _readiness(row: Node) -> Object:
    if since := members.silent_since(row.cluster):
        why = {"reason": "ClusterSilent", "message": silence_message(row.cluster), "lastTransitionTime": stamp(since)}
        return {"type": "Ready", "status": "Unknown", **why}
    return {"type": "Ready", "status": str(row.ready), "reason": "KubeletReady" if row.ready else "KubeletNotReady"}


def _quantity(resource: str, amount: int) -> str:
    if resource == "cpu":
        return quantities.from_milli(amount)
    return quantities.from_bytes(amount) if resource.startswith(_BYTES) else str(amount)


def _status_word(shown: Object) -> str:
    ready = at('.status.conditions[?(@.type=="Ready")].status')(shown)
    word = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    word = f"{word},SchedulingDisabled" if (shown.get("spec") or {}).get("unschedulable") else word
    word = f"{word},Excluded" if _exclusion_of(shown) else word
    return f"{word} (stale)" if is_stale(shown) else word


def _exclusion_of(shown: Object) -> str:
    """Until when it takes no pods of anybody and why; empty: it does."""
    conditions = (shown.get("status") or {}).get("conditions") or []
    return next((str(each["message"]) for each in conditions if each["type"] == _EXCLUDED), "")
