"""The connections to members: one client per cluster and process, made anew when its credentials change."""

import hashlib
import json
import threading
from dataclasses import asdict
from uuid import UUID

from django.conf import settings

from fleet.member.client import Access, MemberClient
from fleet.member.pacing import TokenBucket
from fleet.models import Cluster

_clients: dict[tuple[UUID, float], tuple[str, MemberClient]] = {}
_lock = threading.Lock()


def client(cluster: Cluster, *, timeout_s: float = 10.0) -> MemberClient:
    """The shared client of this cluster. One that was handed out before goes on working after the credentials changed."""
    key, access = (cluster.uid, timeout_s), access_of(cluster)
    fresh = digest(access)
    with _lock:
        known = _clients.get(key)
        if known and known[0] == fresh:
            return known[1]
        pace = TokenBucket(settings.CONVOY_MEMBERS.qps, settings.CONVOY_MEMBERS.burst)
        connected = connect(access, timeout_s=timeout_s, cluster=cluster.name).paced(pace.wait)
        _clients[key] = (fresh, connected)
        return connected


def connect(access: Access, *, timeout_s: float = 10.0, cluster: str = "") -> MemberClient:
    """A client of its own, for the caller to close; ``cluster`` labels its metrics."""
    return MemberClient(access, timeout_s=timeout_s, private_ok=settings.CONVOY_PRIVATE_MEMBERS, cluster=cluster)


def access_of(cluster: Cluster) -> Access:
    return Access(**cluster.access)


def stored(access: Access) -> dict[str, str]:
    """As `Cluster.access` keeps it, encrypted."""
    return asdict(access)


def digest(access: Access) -> str:
    """Differs when anything of the access differs, and reveals nothing of it."""
    return hashlib.sha256(json.dumps(asdict(access), sort_keys=True).encode()).hexdigest()
