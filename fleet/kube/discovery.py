"""Discovery documents: the groups, versions and kinds that an API server serves, in all forms that clients request."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.kube.resources import Resource
from fleet.kube.scale import SCALE

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_BINDING = Resource("", "v1", "bindings", "Binding")
_TOKEN_REQUEST = Resource("authentication.k8s.io", "v1", "", "TokenRequest")
_ANSWERED = {
    "scale": SCALE,
    "binding": _BINDING,
    "token": _TOKEN_REQUEST,
    "exec": Resource("", "v1", "", "PodExecOptions"),
    "attach": Resource("", "v1", "", "PodAttachOptions"),
    "portforward": Resource("", "v1", "", "PodPortForwardOptions"),
}
_FOREIGN = (SCALE, _TOKEN_REQUEST)
"""Kinds of subresources that belong to another group than their object."""
_SUBRESOURCE_VERBS = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "log": ("get",),
    **dict.fromkeys(("exec", "attach", "portforward"), ("create", "get")),
    "binding": ("create",),
    "token": ("create",),
    "proxy": ("create", "delete", "get", "patch", "update"),
}


@dataclass(frozen=True, slots=True)
class Served:
    """A kind as it is served."""

    resource: Resource
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    printed: tuple[Mapping[str, Any], ...] = ()
    """The ``additionalPrinterColumns`` of a definition."""
    document: Mapping[str, Any] | None = None
    """The ``openAPIV3Schema`` of a definition."""
    scale: Mapping[str, str] | None = None
    """The field paths of its ``scale`` subresource."""
    only_read: tuple[str, ...] = ()
    """Subresources that cannot be written."""
    verbs: tuple[str, ...] = VERBS

    @property
    def list_kind(self) -> str:
        return f"{self.resource.kind}List"

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()


def version(text: str) -> dict[str, Any]:
    """``GET /version``. The build fields are empty, but present, because typed clients require them."""
    major, minor = text.removeprefix("v").split(".")[:2]
    build = dict.fromkeys(("gitCommit", "buildDate", "goVersion", "compiler"), "")
    return {
        **{"major": major, "minor": minor, "gitVersion": text, "gitTreeState": "clean"},
        **{**build, "platform": "linux/amd64"},
    }


def core_versions() -> dict[str, Any]:
    """``GET /api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(served: Iterable[Served]) -> dict[str, Any]:
    """``GET /apis``."""
    by_group: dict[str, list[str]] = {}
    for kind in served:
        versions = by_group.setdefault(kind.resource.group, [])
        if kind.resource.version not in versions:
            versions.append(kind.resource.version)
    listed = [group(name, versions) for name, versions in by_group.items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    """``GET /apis/GROUP``."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(api_version: str, served: Iterable[Served]) -> dict[str, Any]:
    """``GET /apis/GROUP/VERSION``."""
    entries: list[dict[str, Any]] = []
    for kind in served:
        entries.append(_entry(kind))
        entries += [_sub_entry(kind, name) for name in kind.subresources]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": entries}


def _entry(served: Served) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": served.resource.plural,
        "singularName": served.singular,
        "namespaced": served.resource.namespaced,
        "kind": served.resource.kind,
        "verbs": list(served.verbs),
    }
    if served.short_names:
        entry["shortNames"] = list(served.short_names)
    if served.categories:
        entry["categories"] = list(served.categories)
    return entry


def _sub_entry(served: Served, name: str) -> dict[str, Any]:
    answered = _answered(served, name)
    elsewhere = {"group": answered.group, "version": answered.version} if answered in _FOREIGN else {}
    return {
        "name": f"{served.resource.plural}/{name}",
        "singularName": "",
        "namespaced": served.resource.namespaced,
        **elsewhere,
        "kind": answered.kind,
        "verbs": list(subresource_verbs(served, name)),
    }


def subresource_verbs(served: Served, name: str) -> tuple[str, ...]:
    return ("get",) if name in served.only_read else _SUBRESOURCE_VERBS[name]


def _answered(served: Served, subresource: str) -> Resource:
    """The kind of object that a subresource returns."""
    return _ANSWERED.get(subresource, served.resource)


def wants_aggregated(accept: str) -> bool:
    """Whether the client prefers aggregated discovery, which it then accepts first."""
    return accept.partition(",")[0].replace(" ", "") == AGGREGATED


def aggregated(served: Iterable[Served]) -> dict[str, Any]:
    """Aggregated discovery: ``GET /api`` for the core kinds, ``GET /apis`` for the others. Its content type is `AGGREGATED`."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for each in served:
        versions = groups.setdefault(each.resource.group, {})
        versions.setdefault(each.resource.version, []).append(_discovered(each))
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {"version": version, "resources": resources, "freshness": "Current"}
                for version, resources in each.items()
            ],
        }
        for name, each in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(served: Served) -> dict[str, Any]:
    resource = served.resource
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _kind(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": list(served.verbs),
    }
    if served.short_names:
        entry["shortNames"] = list(served.short_names)
    if served.categories:
        entry["categories"] = list(served.categories)
    inner = [
        {
            "subresource": name,
            "responseKind": _kind(_answered(served, name)),
            "verbs": list(subresource_verbs(served, name)),
        }
        for name in served.subresources
    ]
    return {**entry, "subresources": inner} if inner else entry


def _kind(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}
