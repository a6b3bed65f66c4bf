"""Finds the resource that a word such as ``po``, ``pytorchjob`` or ``jobs.batch`` names, from the discovery of one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from frontend.cli.amc.fleet import Failure, Member
from frontend.cli.problems import Problem

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class Resource:
    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short: tuple[str, ...] = ()

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def shown(self) -> str:
        """The form that ``-o name`` prints."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    def path(self, namespace: str, name: str = "") -> str:
        """The path of the collection, or of one object in it. An empty namespace means all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")


def find(member: Member, word: str) -> Resource:
    """The first resource that the word names, in the cluster's order of groups. Full names come before short names."""
    word, _, group = word.lower().partition(".")
    served = [resource for resource in _served(member, word) if not group or _in_group(resource, group)]
    for resource in served:
        if word in (resource.plural, resource.singular, resource.kind.lower()):
            return resource
    for resource in served:
        if word in resource.short:
            return resource
    raise Problem(f'the server doesn\'t have a resource type "{word}{"." + group if group else ""}"')


def _in_group(resource: Resource, group: str) -> bool:
    """Whether ``group`` names the resource's group, as kubectl matches it.

    It may be ``kubeflow.org``, ``v1.kubeflow.org``, or the first labels of the group.
    """
    return group in (resource.group, f"{resource.version}.{resource.group}".rstrip(".")) or resource.group.startswith(
        group + "."
    )


def _served(member: Member, word: str) -> list[Resource]:
    core = list(_discover(member, "/api"))
    if any(word in (resource.plural, resource.singular, resource.kind.lower(), *resource.short) for resource in core):
        return core
    return core + list(_discover(member, "/apis"))


def _discover(member: Member, root: str) -> Iterator[Resource]:
    """The resources below ``root``: from one aggregated document if the cluster has it, else from one for each version."""
    document = member.get(root, accept=_AGGREGATED)
    if document.get("kind") == "APIGroupDiscoveryList":
        for group in document.get("items") or []:
            name = str((group.get("metadata") or {}).get("name") or "")
            for version in group.get("versions") or []:
                yield from _from_aggregated(name, version)
    elif root == "/api":
        yield from _from_resource_list(member, "", "v1", "/api/v1")
    else:
        for group in document.get("groups") or []:
            for version in _preferred_first(group):
                yield from _from_resource_list(member, group["name"], version, f"/apis/{group['name']}/{version}")


def _preferred_first(group: dict[str, Any]) -> list[str]:
    first = str((group.get("preferredVersion") or {}).get("version") or "")
    return list(dict.fromkeys([*([first] if first else []), *(entry["version"] for entry in group["versions"])]))


def _from_aggregated(group: str, version: dict[str, Any]) -> Iterator[Resource]:
    for entry in version.get("resources") or []:
        kind = str((entry.get("responseKind") or {}).get("kind") or "")
        yield Resource(
            group=group,
            version=str(version["version"]),
            plural=str(entry["resource"]),
            singular=str(entry.get("singularResource") or kind.lower()),
            kind=kind,
            namespaced=entry.get("scope") == "Namespaced",
            short=tuple(entry.get("shortNames") or ()),
        )


def _from_resource_list(member: Member, group: str, version: str, path: str) -> Iterator[Resource]:
    try:
        document = member.get(path)
    except Failure as e:
        if e.away:
            return  # A single aggregated API may be unavailable, which must not hide the others.
        raise
    for entry in document.get("resources") or []:
        if "/" in entry["name"]:
            continue
        singular = str(entry.get("singularName") or entry["kind"].lower())
        short = tuple(entry.get("shortNames") or ())
        yield Resource(group, version, entry["name"], singular, entry["kind"], bool(entry["namespaced"]), short)
