"""What a URL path of an API server means: which kind, which namespace, which object, which subresource."""

from dataclasses import dataclass
from urllib.parse import unquote

from fleet.kube.discovery import Served
from fleet.kube.status import unknown_path
from simulator.apiserver.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Target:
    served: Served
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str, catalog: Catalog) -> Target:
    """The target of ``/api/v1/...`` or ``/apis/GROUP/VERSION/...``; raises NotFound for anything else."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    served = catalog.find(group, version, rest[0])
    if served is None or len(rest) > 3 or (namespace and not served.resource.namespaced):
        raise unknown_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in served.subresources:
        raise unknown_path()
    if name and served.resource.namespaced and not namespace:
        raise unknown_path()
    return Target(served, namespace, name, subresource)
