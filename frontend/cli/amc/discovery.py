"""What a word such as ``po``, ``pytorchjob`` or ``jobs.batch`` means to one cluster, by what that cluster says it serves."""

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
        """As ``-o name`` says it."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    def path(self, namespace: str, name: str = "") -> str:
        """Of the collection, or of one object in it; an empty namespace is all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")


def find(member: Member, word: str) -> Resource:
    """The first the cluster serves under this word; names before short names, in the cluster's own order of groups."""
    word, _, group = word.lower().partition(".")
    served = [each for each in _served(member, word) if not group or _in_group(each, group)]
    for resource in served:
        if word in (resource.plural, resource.singular, resource.kind.lower()):
            return resource
    for resource in served:
        if word in resource.short:
            return resource
    raise Problem(f'the server doesn\'t have a resource type "{word}{"." + group if group else ""}"')


def _in_group(resource: Resource, group: str) -> bool:
    """``kubeflow.org``, ``v1.kubeflow.org``, or the beginning of the group, as kubectl takes it."""
    return group in (resource.group, f"{resource.version}.{resource.group}".rstrip(".")) or resource.group.startswith(
        group + "."
    )


def _served(member: Member, word: str) -> list[Resource]:
    core = list(_collected(member, "/api"))
    if any(word in (each.plural, each.singular, each.kind.lower(), *each.short) for each in core):
        return core
    return core + list(_collected(member, "/apis"))


def _collected(member: Member, root: str) -> Iterator[Resource]:
    """From one document where the cluster has it, else from one a version."""
    document = member.get(root, accept=_AGGREGATED)
    if document.get("kind") == "APIGroupDiscoveryList":
        for group in document.get("items") or []:
            name = str((group.get("metadata") or {}).get("name") or "")
            for version in group.get("versions") or []:
                yield from _told_together(name, version)
    elif root == "/api":
        yield from _told_alone(member, "", "v1", "/api/v1")
    else:
        for group in document.get("groups") or []:
            for version in _preferred_first(group):
                yield from _told_alone(member, group["name"], version, f"/apis/{group['name']}/{version}")


def _preferred_first(group: dict[str, Any]) -> list[str]:
    first = str((group.get("preferredVersion") or {}).get("version") or "")
    return list(dict.fromkeys([*([first] if first else []), *(each["version"] for each in group["versions"])]))


def _told_together(group: str, version: dict[str, Any]) -> Iterator[Resource]:
    for each in version.get("resources") or []:
        kind = str((each.get("responseKind") or {}).get("kind") or "")
        yield Resource(
            group=group,
            version=str(version["version"]),
            plural=str(each["resource"]),
            singular=str(each.get("singularResource") or kind.lower()),
            kind=kind,
            namespaced=each.get("scope") == "Namespaced",
            short=tuple(each.get("shortNames") or ()),
        )


def _told_alone(member: Member, group: str, version: str, path: str) -> Iterator[Resource]:
    try:
        document = member.get(path)
    except Failure as e:
        if e.away:
            return  # One API of many may be down: an aggregated one whose server is gone.
        raise
    for each in document.get("resources") or []:
        if "/" in each["name"]:
            continue
        singular = str(each.get("singularName") or each["kind"].lower())
        short = tuple(each.get("shortNames") or ())
        yield Resource(group, version, each["name"], singular, each["kind"], bool(each["namespaced"]), short)
