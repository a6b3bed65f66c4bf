"""``metrics.k8s.io`` at the fleet: what pods of fleet jobs and nodes use, put together from the members that measure it.

Read when it is asked for. A member that gives no answer is a warning beside the answer of the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from fleet.core.members.typed_values import duration, is_quantity, mapping, mappings, moment, text
from fleet.kube.discovery import Served
from fleet.kube.requests.status import KubeError, not_found
from fleet.kube.resources import NODE_METRICS, POD_METRICS
from fleet.kube.server.kinds import Exact, Key, Namespaces, Object
from fleet.kube.server.request import Request
from fleet.kube.server.selection import selection
from fleet.kubeapi.objects.kinds import Kind
from fleet.kubeapi.objects.members import CLUSTER, NAME, MemberKind
from fleet.models import Cluster
from fleet.services.members import member_metrics

MOST = 20_000
"""Objects of one answer, which is put together in memory."""


class Metrics(Kind):
    """What the objects of another kind use."""

    verbs = ("get", "list")

    def __init__(self, measured: MemberKind) -> None:
        self._measured = measured
        self.resource = POD_METRICS if measured.served.resource.namespaced else NODE_METRICS
        self.served = Served(self.resource)

    def objects(self, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        """None are kept: `answer` asks for them."""
        return iter(())

    def answer(self, request: Request, namespaces: Namespaces, namespace: str, name: str) -> Object:
        """One object, or the list that the request selects."""
        if name:
            shown = self._measured.get(namespace, name)
            items = self._usage([shown], request, namespace) if shown else []
            if not items:
                raise not_found(self.resource, name)
            return items[0]
        selected = selection(request, self._measured)
        objects = (shown for shown in self._measured.objects(namespaces, None, selected.exact) if selected.takes(shown))
        shown_objects = list(islice(objects, MOST + 1))
        if len(shown_objects) > MOST:
            raise KubeError(400, f"more than {MOST} {self.resource.plural}: name a namespace, or select by labels")
        items = self._usage(shown_objects, request, namespace)
        kind, version = self.served.list_kind, self.resource.api_version
        return {"kind": kind, "apiVersion": version, "metadata": {}, "items": items}

    def _usage(self, shown_objects: Sequence[Object], request: Request, namespace: str) -> list[Object]:
        names = {shown["metadata"]["annotations"][CLUSTER] for shown in shown_objects}
        rows = Cluster.objects.filter(name__in=names).order_by("name")
        usage: dict[str, Mapping[Any, Object]] = {}
        for answer in member_metrics.measured(self.resource, rows, namespace):
            usage[answer.cluster] = answer.items
            if answer.error:
                request.warnings.append(f"cluster {answer.cluster} gives no metrics: {answer.error}"[:300])
        return [
            {"kind": self.name, **_at_fleet(shown, measured)}
            for shown in shown_objects
            if (measured := usage.get(shown["metadata"]["annotations"][CLUSTER], {}).get(_key(shown)))
        ]


def _key(shown: Object) -> tuple[str, str]:
    """Of the object in its cluster."""
    return shown["metadata"].get("namespace", ""), shown["metadata"]["annotations"][NAME]


def _at_fleet(shown: Object, measured: Object) -> Object:
    """What was measured, under the name at the fleet."""
    kept = (key for key in ("name", "namespace", "labels", "annotations") if key in shown["metadata"])
    parts: Object = {
        "timestamp": moment(measured.get("timestamp")) or None,
        "window": duration(measured.get("window")) or "0s",
    }
    if "containers" in measured:
        containers = mappings(measured["containers"])
        parts["containers"] = [{"name": text(each.get("name")), "usage": _amounts(each)} for each in containers]
    else:
        parts["usage"] = _amounts(measured)
    return {
        "apiVersion": NODE_METRICS.api_version,
        "metadata": {key: shown["metadata"][key] for key in kept},
        **parts,
    }


def _amounts(measured: Mapping[str, Any]) -> Object:
    return {name: str(amount) for name, amount in mapping(measured.get("usage")).items() if is_quantity(amount)}
