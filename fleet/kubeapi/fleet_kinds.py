"""Supply as Kubernetes objects: clusters, the namespaces in use, and events. All of them are read only."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from fleet.kube.discovery import Served
from fleet.kube.resources import EVENTS, NAMESPACES, Resource
from fleet.kubeapi.kinds import Column, Key, Kind, Object, RowKind, head, stamp
from fleet.kubeapi.tables import AGE, age
from fleet.models import Cluster, Event

CLUSTERS = Resource("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", namespaced=False)


class Clusters(RowKind):
    """Joining and leaving take credentials and stay with REST and the command line."""

    served = Served(CLUSTERS)
    columns = (
        Column("Version", lambda shown, now: shown.get("status", {}).get("kubernetesVersion", "")),
        Column("Mode", lambda shown, now: shown.get("spec", {}).get("syncMode", "")),
        Column("Ready", lambda shown, now: _ready(shown)),
        AGE,
        Column("Region", lambda shown, now: shown.get("spec", {}).get("region", ""), wide=True),
        Column("Endpoint", lambda shown, now: shown.get("spec", {}).get("apiEndpoint", ""), wide=True),
    )

    def rows(self) -> QuerySet[Any]:
        return Cluster.objects.defer("access", "permissions")

    def render(self, row: Cluster) -> Object:
        spec = {
            "apiEndpoint": row.server,
            "syncMode": "Push",
            "provider": row.provider,
            "region": row.region,
            "zone": row.zone,
            "taints": [*row.taints, *([_CORDON] if row.cordoned else [])],
        }
        enablements = [
            {"groupVersion": version, "resources": [{"kind": kind, "name": plural} for kind, plural in found.items()]}
            for version, found in sorted(row.apis.items())
        ]
        return {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": head(row, labels=row.labels, creationTimestamp=stamp(row.joined_at)),
            "spec": {key: value for key, value in spec.items() if value},
            "status": {
                "kubernetesVersion": row.version,
                "apiEnablements": enablements,
                "conditions": [_readiness(row)],
            },
        }


_CORDON = {"key": "convoy.dev/cordoned", "effect": "NoSchedule"}
_TRUTH = {Cluster.State.READY: "True", Cluster.State.NOT_READY: "False"}


def _readiness(row: Cluster) -> Object:
    return {
        "type": "Ready",
        "status": _TRUTH.get(Cluster.State(row.state), "Unknown"),
        "reason": row.state_reason or f"Cluster{row.state}",
        "message": row.state_message,
        "lastTransitionTime": stamp(row.state_since),
    }


def _ready(shown: Object) -> str:
    return next((str(each["status"]) for each in shown.get("status", {}).get("conditions", [])), "Unknown")


class Namespaces(Kind):
    """A namespace is there as soon as something is in it: there is nothing to create and nothing to delete."""

    served = Served(NAMESPACES, ("ns",))
    verbs = ("get", "list")
    columns = (Column("Status", lambda shown, now: "Active"), AGE)

    def __init__(self, sources: Iterable[Callable[[], Iterable[str]]]) -> None:
        self._sources = tuple(sources)

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, name: str = "") -> Iterator[Object]:
        found = {"default"}.union(*(source() for source in self._sources))
        for each in sorted(found):
            if (not name or each == name) and (after is None or each > after[1]):
                metadata = {"name": each, "uid": each, "resourceVersion": "1"}
                labels = {"kubernetes.io/metadata.name": each}
                yield {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {**metadata, "labels": labels},
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                }


class Events(RowKind):
    """Timelines; the events of what lives in no namespace are in ``default``, as in Kubernetes."""

    served = Served(EVENTS, ("ev",))
    verbs = ("get", "list")
    field_labels = frozenset(
        {*(f"involvedObject.{part}" for part in ("kind", "namespace", "name", "uid")), "reason", "type"}
    )
    columns = (
        Column("Last Seen", lambda shown, now: age(shown.get("lastTimestamp"), now)),
        Column("Type", lambda shown, now: shown["type"]),
        Column("Reason", lambda shown, now: shown["reason"]),
        Column("Object", lambda shown, now: _about(shown)),
        Column("Message", lambda shown, now: shown["message"]),
    )

    def rows(self) -> QuerySet[Any]:
        return Event.objects.all()

    def objects(self, namespaces: frozenset[str] | None, after: Key | None, name: str = "") -> Iterator[Object]:
        """Their names are made here and sort as their rows do."""
        rows = self.rows().order_by("pk")
        if namespaces is not None:
            inside = namespaces | {""} if "default" in namespaces else namespaces
            rows = rows.filter(regarding_namespace__in=inside)
        wanted = name or (after[1] if after else "")
        if wanted:
            number = wanted.rpartition(".")[2]
            pk = int(number, 16) if _is_hex(number) else 0
            rows = rows.filter(pk=pk) if name else rows.filter(pk__gt=pk)
        shown = (self.render(row) for row in rows.iterator(chunk_size=self.chunk))
        return (each for each in shown if not name or each["metadata"]["name"] == name)

    def render(self, row: Event) -> Object:
        namespace = row.regarding_namespace or "default"
        about = {
            "kind": row.regarding_kind,
            "namespace": row.regarding_namespace,
            "name": row.regarding_name,
            "uid": row.regarding_uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{row.regarding_name}.{row.pk:015x}",
                "namespace": namespace,
                "uid": str(row.uid),
                "resourceVersion": "1",
                "creationTimestamp": stamp(row.first_at),
            },
            "involvedObject": {key: value for key, value in about.items() if value},
            "type": row.type,
            "reason": row.reason,
            "message": row.message,
            "source": {"component": row.source},
            "reportingComponent": row.source,
            "firstTimestamp": stamp(row.first_at),
            "lastTimestamp": stamp(row.last_at),
            "count": row.count,
        }


def _is_hex(text: str) -> bool:
    return len(text) == 15 and all(letter in "0123456789abcdef" for letter in text)


def _about(shown: Object) -> str:
    about = shown["involvedObject"]
    return f"{about['kind'].lower()}/{about['name']}"


def namespaces_of(rows: QuerySet[Any], field: str = "namespace") -> Callable[[], Iterable[str]]:
    """The namespaces some rows are in."""
    return lambda: {each for each in rows.order_by().values_list(field, flat=True).distinct() if each}
