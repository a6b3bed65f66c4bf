"""What ``-o`` and ``--sort-by`` ask for, as kubectl spells it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frontend.cli.amc import paths
from frontend.cli.amc.fleet import Object
from frontend.cli.amc.paths import Path
from frontend.cli.problems import Problem

CLUSTER_NOTE = "convoy.dev/cluster"
"""Where an object is, in lists of several clusters' objects."""
_PLAIN = ("", "wide", "yaml", "json", "name")
_MORE = ("jsonpath=TEMPLATE", "custom-columns=NAME:PATH,...")

_ONE_CLUSTER = (
    "kubectl itself can, of one cluster, through the fleet: "
    "kubectl --server SERVER/apis/cluster.karmada.io/v1alpha1/clusters/CLUSTER/proxy get ..."
)


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    say: Callable[[Any], str] = str
    """Of a jsonpath."""
    columns: tuple[tuple[str, Path], ...] = ()
    """Of custom-columns."""

    @property
    def by_server(self) -> bool:
        """Whether the columns are those the server names."""
        return self.name in ("", "wide")

    @property
    def in_lines(self) -> bool:
        return self.by_server or bool(self.columns)

    @property
    def headers(self) -> list[str]:
        return [name for name, _ in self.columns]

    def cells(self, item: Object) -> list[str]:
        found = [path.find(item) for _, path in self.columns]
        return [",".join(paths.text(each) for each in some) or "<none>" for some in found]


def read(output: str) -> Format:
    name, _, rest = output.partition("=")
    if output in _PLAIN:
        return Format(output)
    if name == "jsonpath" and rest:
        return Format(name, say=paths.template(rest))
    if name == "custom-columns" and rest:
        return Format(name, columns=tuple(_column(each) for each in rest.split(",")))
    raise Problem(f"-o {output} is not known: use {', '.join((*_PLAIN[1:], *_MORE))}", hint=_ONE_CLUSTER)


def _column(spec: str) -> tuple[str, Path]:
    name, colon, path = spec.partition(":")
    if not colon or not name or not path:
        raise Problem(f"custom-columns: {spec!r} is no NAME:PATH, such as IMAGE:.spec.containers[*].image")
    return name, paths.path(path)


def order(sort_by: str) -> Callable[[Object], tuple[int, Any]]:
    """What to sort objects by: those that say nothing first, then numbers, then words."""
    path = paths.path(sort_by)

    def key(item: Object) -> tuple[int, Any]:
        value = next(iter(path.find(item)), None)
        if value is None:
            return 0, 0
        return (1, value) if isinstance(value, (int, float)) else (2, paths.text(value))

    return key


def noted(item: Object, cluster: str) -> Object:
    """The object with where it is."""
    metadata = item["metadata"]
    return {
        **item,
        "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), CLUSTER_NOTE: cluster}},
    }
