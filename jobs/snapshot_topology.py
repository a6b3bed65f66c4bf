"""Where the fleet's nodes are in their networks, as their labels and the fleet's table of switches say it now.

Read once for many nodes. It must not know gangs: a node's row in, its place at each level out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from fleet.errors import FieldFault
from fleet.models import Cluster, Node
from jobs.core.manifest_fields import Faults
from jobs.core.topology import network
from jobs.core.topology.network import Domain, Place
from jobs.models import Dependent

NAMESPACES = ("kube-system", "dlrover")
"""Where a table speaks of the fleet, the first that has one: that of the clusters' own objects, and that of DLRover's guide.
Who writes it says where the nodes of all tenants are (`jobs.services.submission.changes.actions.require_may_move_nodes`)."""

Labels = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Of all clusters, good until a table or a cluster's annotations change."""

    tables: Mapping[str, Mapping[str, Place]] = field(default_factory=dict)
    """Cluster, or the entry for all → address → place."""
    names: Mapping[int, str] = field(default_factory=dict)
    labels: Mapping[int, Labels] = field(default_factory=dict)
    """Of clusters that have their own, by primary key."""

    def domain(self, node: Node) -> Domain:
        return network.domain(node.labels, self.labels_of(node.cluster_id), self._place(node))

    def labels_of(self, cluster_id: int) -> Labels:
        return self.labels.get(cluster_id, network.LABELS)

    def _place(self, node: Node) -> Place | None:
        if not self.tables:
            return None
        of_all = self.tables.get(network.ENTRY, {}).get(node.address)
        return self.tables.get(self.names.get(node.cluster_id, ""), {}).get(node.address, of_all)


def whereabouts() -> Whereabouts:
    rows = Cluster.objects.values_list("pk", "name", "annotations")
    names, own = {}, {}
    for pk, name, annotations in rows:
        names[pk] = name
        if network.OWN_LABELS in (annotations or {}):
            own[pk] = network.labels_of(annotations)
    return Whereabouts(tables(), names, own)


def tables() -> dict[str, dict[str, Place]]:
    """The table by entry. Invalid lines were reported when it was applied, and are skipped."""
    # In the clusters' own namespace only those who may have ever written; elsewhere a row of before counts once they write it.
    written_by_admin = Q(moves_nodes=True) | Q(namespace=NAMESPACES[0])
    rows = Dependent.objects.filter(written_by_admin, kind="ConfigMap", namespace__in=NAMESPACES, name=network.TABLE)
    row = min(rows, key=lambda row: NAMESPACES.index(row.namespace), default=None)
    data = row.manifest.get("data") if row else None
    if not isinstance(data, dict):
        return {}
    return {entry: network.parse_network(text, f"data.{entry}", Faults()) for entry, text in sorted(data.items())}


def faults_of(manifest: Mapping[str, Any]) -> list[FieldFault]:
    """Of a manifest that is the table; of any other, none."""
    metadata = manifest["metadata"]
    if not concerns(manifest["kind"], metadata.get("namespace", ""), metadata.get("name", "")):
        return []
    faults = Faults()
    for entry, text in faults.mapping(manifest.get("data"), "data").items():
        network.parse_network(text, f"data.{entry}", faults)
    return faults.found


def concerns(kind: str, namespace: str, name: str) -> bool:
    """Whether a change of this object may have moved nodes."""
    return (kind, name) == ("ConfigMap", network.TABLE) and namespace in NAMESPACES
