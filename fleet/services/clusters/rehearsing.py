"""A simulated member is broken on purpose, so that people can see what becomes of its jobs; never one that is real.

Speaks to the simulator beside this product through the socket in its home (`settings.CONVOY_SIMULATOR`), which is reached by
the owner of that folder only. The member itself is not asked: it behaves as if its machine were gone.
"""

import json
import os
import socket
from datetime import datetime
from pathlib import Path

from django.conf import settings

from fleet.changes import events
from fleet.errors import Conflict, Unavailable
from fleet.models import Cluster
from fleet.services.clusters import clusters

_SOCKET = "control.sock"
_TIMEOUT_S = 10.0


def silence(cluster: Cluster, *, by: str, now: datetime) -> None:
    """Make the simulated member answer no request from now on."""
    _disturb(cluster, "away")
    _record_event(cluster, "SilencedOnPurpose", f"{by} let the simulated cluster fall silent", now)


def revive(cluster: Cluster, *, by: str, now: datetime) -> None:
    _disturb(cluster, "back")
    _record_event(cluster, "RevivedOnPurpose", f"{by} let the simulated cluster answer again", now)


def reclaim(cluster: Cluster, node: str, notice_s: float, *, by: str, now: datetime) -> None:
    """The provider of a simulated member takes a node back, with so much notice (simulated seconds)."""
    _disturb(cluster, "reclaim", node, f"{notice_s:.3f}")
    message = f"{by} let node {node} of the simulated cluster be reclaimed, with {notice_s:g} s of notice"
    _record_event(cluster, "ReclaimedOnPurpose", message, now)


def give_back(cluster: Cluster, node: str, *, by: str, now: datetime) -> None:
    """The node is there again; a reclaim whose time is not over is called off."""
    _disturb(cluster, "node-up", node)
    _record_event(cluster, "GivenBackOnPurpose", f"{by} let node {node} of the simulated cluster come back", now)


def _disturb(cluster: Cluster, *fault: str) -> None:
    if not cluster.simulated:
        raise Conflict(f"{cluster.name} is no simulated cluster: only those can be broken on purpose")
    try:
        answer = _asked(Path(settings.CONVOY_SIMULATOR), {"member": cluster.name, "words": fault})
    except (OSError, ValueError) as e:
        raise Unavailable("the simulator does not answer: is it running?") from e
    if not answer.get("ok"):
        raise Conflict(f"the simulator refuses: {answer.get('message')}")


def _asked(home: Path, request: dict[str, object]) -> dict[str, object]:
    # The folder is opened first: a socket's address holds barely more than a hundred characters.
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(f"/proc/self/fd/{folder}/{_SOCKET}")
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer: dict[str, object] = json.loads(connection.makefile("rb").readline())
            return answer
    finally:
        os.close(folder)


def _record_event(cluster: Cluster, reason: str, message: str, now: datetime) -> None:
    warning = reason in ("SilencedOnPurpose", "ReclaimedOnPurpose")
    events.record(clusters.change(cluster), reason, message, now, warning=warning)
