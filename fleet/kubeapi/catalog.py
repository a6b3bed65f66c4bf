"""The kinds a server serves, found by what a URL says; and what a URL path means."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleet.kube.status import unknown_path
from fleet.kubeapi.kinds import Kind


class Catalog:
    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = tuple(kinds)
        self._found = {(k.served.resource.group, k.served.resource.version, k.served.resource.plural): k for k in kinds}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._found.get((group, version, plural))

    def of_version(self, group: str, version: str) -> list[Kind]:
        return [k for k in self._kinds if (k.served.resource.group, k.served.resource.version) == (group, version)]

    def versions(self, group: str) -> list[str]:
        return list(dict.fromkeys(k.served.resource.version for k in self._kinds if k.served.resource.group == group))

    def named(self, group: str, plural: str) -> Kind | None:
        """In whatever version."""
        same = (k for k in self._kinds if (k.served.resource.group, k.served.resource.plural) == (group, plural))
        return next(same, None)


@dataclass(frozen=True, slots=True)
class Target:
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str, catalog: Catalog) -> Target:
    """The target of ``/api/v1/...`` or ``/apis/GROUP/VERSION/...``; raises NotFound for anything else."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = catalog.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.served.resource.namespaced):
        raise unknown_path()
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.shown.subresources:
        raise unknown_path()
    name = rest[1] if len(rest) > 1 else ""
    if name and kind.served.resource.namespaced and not namespace:
        raise unknown_path()
    return Target(kind, namespace, name, subresource)
