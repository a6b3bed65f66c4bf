"""Parses the values of ``-o`` and ``--sort-by``, in kubectl's syntax. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frontend.cli.amc import paths
from frontend.cli.amc.fleet import Object
from frontend.cli.amc.paths import Path
from frontend.cli.problems import Problem

CLUSTER_ANNOTATION = "convoy.dev/cluster"
"""Annotation that names the cluster of an object, in lists of objects from several clusters."""
_PLAIN = ("", "wide", "yaml", "json", "name")
_MORE = ("jsonpath=TEMPLATE", "custom-columns=NAME:PATH,...")

_ONE_CLUSTER = (
    "kubectl itself supports it for one cluster, through the fleet: "
    "kubectl --server SERVER/apis/cluster.karmada.io/v1alpha1/clusters/CLUSTER/proxy get ..."
)


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    render: Callable[[Any], str] = str
    """Evaluates a jsonpath template."""
    columns: tuple[tuple[str, Path], ...] = ()
    """The custom columns."""

    @property
    def by_server(self) -> bool:
        """Whether the server chooses the columns."""
        return self.name in ("", "wide")

    @property
    def in_lines(self) -> bool:
        return self.by_server or bool(self.columns)

    @property
    def headers(self) -> list[str]:
        return [name for name, _ in self.columns]

    def cells(self, item: Object) -> list[str]:
        columns = [path.find(item) for _, path in self.columns]
        return [",".join(map(paths.text, values)) or "<none>" for values in columns]


def read(output: str) -> Format:
    name, _, rest = output.partition("=")
    if output in _PLAIN:
        return Format(output)
    if name == "jsonpath" and rest:
        return Format(name, render=paths.template(rest))
    if name == "custom-columns" and rest:
        return Format(name, columns=tuple(map(_column, rest.split(","))))
    raise Problem(f"-o {output} is not known: use {', '.join((*_PLAIN[1:], *_MORE))}", hint=_ONE_CLUSTER)


def _column(spec: str) -> tuple[str, Path]:
    name, colon, path = spec.partition(":")
    if not colon or not name or not path:
        raise Problem(f"custom-columns: {spec!r} is not NAME:PATH, such as IMAGE:.spec.containers[*].image")
    return name, paths.path(path)


def order(sort_by: str) -> Callable[[Object], tuple[int, Any]]:
    """A sort key for objects: objects without a value come first, then numbers, then text."""
    path = paths.path(sort_by)

    def key(item: Object) -> tuple[int, Any]:
        value = next(iter(path.find(item)), None)
        if value is None:
            return 0, 0
        return (1, value) if isinstance(value, (int, float)) else (2, paths.text(value))

    return key


def annotated(item: Object, cluster: str) -> Object:
    """The object with an annotation that names its cluster."""
    metadata = item["metadata"]
    annotations = {**(metadata.get("annotations") or {}), CLUSTER_ANNOTATION: cluster}
    return {**item, "metadata": {**metadata, "annotations": annotations}}
