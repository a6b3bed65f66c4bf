"""What is installed in a member from the start, by manifests of its administrator: the supervisor of elastic jobs, for one.

The word CHECKOUT in them stands for the folder of this product's sources, from which their processes import.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

import yaml

from fleet.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES
from fleet.member.client import MemberClient, Object
from fleet.member.errors import MemberExists
from simulator.machinery.objects import namespace_of

_CHECKOUT = Path(__file__).resolve().parents[1]
_RESOURCES = {"Namespace": NAMESPACES, "ServiceAccount": SERVICE_ACCOUNTS, "Service": SERVICES, "Pod": PODS}


class BadManifest(ValueError):
    """A file cannot be read, or has objects of other kinds. The message shows which."""


def read(path: Path) -> list[Object]:
    """The objects of a file, in its order."""
    try:
        documents = list(filter(None, yaml.safe_load_all(path.read_text().replace("CHECKOUT", str(_CHECKOUT)))))
    except (OSError, yaml.YAMLError) as e:
        raise BadManifest(f"{path}: {e}") from e
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") not in _RESOURCES:
            raise BadManifest(f"{path}: members have {', '.join(_RESOURCES)} from the start, and nothing else")
    return documents


def create(client: MemberClient, objects: Iterable[Object]) -> None:
    """Creates the objects that are not there: after a restart, those that were deleted meanwhile."""
    for each in objects:
        with contextlib.suppress(MemberExists):
            client.create(_RESOURCES[each["kind"]].path(namespace_of(each)), each)
