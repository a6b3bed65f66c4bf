"""The catalog of the kinds that a server serves, and the parser of URL paths."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from fleet.kube.requests.status import unknown_path
from fleet.kube.server.kinds import Kind

K = TypeVar("K", bound=Kind)


class Catalog(Generic[K]):
    """Kinds by group, version and plural; a server may learn more of them while it runs."""

    def __init__(self, kinds: Iterable[K] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], K] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: K) -> None:
        resource = kind.served.resource
        self._kinds[resource.group, resource.version, resource.plural] = kind

    def remove(self, group: str, version: str, plural: str) -> None:
        self._kinds.pop((group, version, plural), None)

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._kinds.values()))

    def find(self, group: str, version: str, plural: str) -> K | None:
        return self._kinds.get((group, version, plural))

    def of_version(self, group: str, version: str) -> list[K]:
        return [kind for key, kind in self._kinds.items() if key[:2] == (group, version)]

    def versions(self, group: str) -> list[str]:
        return list(dict.fromkeys(version for other, version, _ in self._kinds if other == group))

    def named(self, group: str, plural: str) -> K | None:
        """The kind in any version."""
        same = (kind for key, kind in self._kinds.items() if (key[0], key[2]) == (group, plural))
        return next(same, None)


@dataclass(frozen=True, slots=True)
class Target(Generic[K]):
    """What a request is about: a collection, an object, or a subresource of one."""

    kind: K
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str, catalog: Catalog[K]) -> Target[K]:
    """The target of ``/api/v1/...`` or ``/apis/GROUP/VERSION/...``; raises NotFound for every other path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    kind = catalog.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.served.resource.namespaced):
        raise unknown_path()
    name, subresource = (*rest[1:], "", "")[:2]
    if subresource and subresource not in kind.shown.subresources:
        raise kind.not_served(subresource)
    if name and kind.served.resource.namespaced and not namespace:
        raise unknown_path()
    return Target(kind, namespace, name, subresource)
