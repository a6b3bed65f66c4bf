"""The supervisor in a simulated member, as its manifest runs it there: a pod with its own service account."""

from collections.abc import Callable
from pathlib import Path

import yaml

from fleet.kube.resources import LEASES, NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES
from fleet.member.client import MemberClient

CHECKOUT = Path(__file__).parents[2]
ENVIRONMENT = {"CONVOY_PROCESS_PODS": "default,arena-system", "CONVOY_PROCESS_PATHS": str(CHECKOUT)}
"""What the simulator must be started with."""
_MANIFEST = CHECKOUT / "deploy" / "supervisor-manifests" / "simulated.yaml"
_RESOURCES = {"Namespace": NAMESPACES, "ServiceAccount": SERVICE_ACCOUNTS, "Pod": PODS, "Service": SERVICES}


def supervise(client: MemberClient, until: Callable[[Callable[[], object]], object]) -> None:
    """Returns when it has its lease; ``until`` waits."""
    for document in yaml.safe_load_all(_MANIFEST.read_text().replace("CHECKOUT", str(CHECKOUT))):
        path = _RESOURCES[document["kind"]].path(document["metadata"].get("namespace", ""))
        client.create(path, document)
    until(lambda: client.list(LEASES.path("arena-system"))["items"])
