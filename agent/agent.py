"""One look after the other at the fleet's Lease: an answer to each renewal, and a stop of all copies once it has expired."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from structlog import get_logger

from agent import stopping
from agent.core import FleetLease
from fleet.core.members import fence
from fleet.errors import ConvoyError
from fleet.kube.resources import LEASES
from fleet.member.client import Access, MemberClient, Object
from fleet.member.errors import MemberError, MemberExists, MemberMissing

log = get_logger(__name__)

LOOK_S = 2.0
_REREAD_S = 30.0
"""How often the token's file is read again."""
_PATH = LEASES.path(fence.NAMESPACE, fence.NAME)


@dataclass
class Agent:
    """``steady`` counts seconds, also those in which the machine sleeps; ``now`` is for people to read."""

    client: MemberClient
    steady: Callable[[], float]
    now: Callable[[], datetime]
    lease: FleetLease | None = None
    """None until the first look: before that nothing is known, and nothing could be stopped."""
    is_stopping: bool = False

    def look(self) -> None:
        """Raises MemberError when the API server does not answer: then nothing can be stopped either."""
        began = self.steady()
        copies = self._find()
        self.lease = self.lease or FleetLease(began)
        if self.lease.look(copies, began):
            self._answer(self.lease.renewal)
        expired = self.lease.has_expired(self.steady())
        if expired != self.is_stopping:
            log.warning("the Lease has expired" if expired else "the Lease is renewed", lease=_PATH)
        self.is_stopping = expired
        if expired:
            stopping.stop_all(self.client, self.now().isoformat(timespec="seconds"))

    def _find(self) -> Object:
        try:
            return self.client.get(_PATH)
        except MemberMissing:
            return self._create()

    def _create(self) -> Object:
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": fence.NAME, "namespace": fence.NAMESPACE},
            "spec": {},
        }
        try:
            return self.client.create(LEASES.path(fence.NAMESPACE), body)
        except MemberExists:
            return self.client.get(_PATH)

    def _answer(self, renewal: str) -> None:
        self.client.merge_patch(_PATH, {"metadata": {"annotations": {fence.SEEN: renewal}}})


def run(
    read_access: Callable[[], Access], steady: Callable[[], float], now: Callable[[], datetime], end: threading.Event
) -> None:
    """Looks until ``end``. A failed look is repeated; new credentials are taken up without a new start."""
    access, reread_at = read_access(), steady() + _REREAD_S
    agent = Agent(MemberClient(access), steady, now)
    while not end.wait(LOOK_S):
        if steady() > reread_at:
            reread_at = steady() + _REREAD_S
            access = _renewed(agent, read_access, access)
        try:
            agent.look()
        except MemberError as e:
            log.warning("no look at the Lease", error=e.message)
    agent.client.close()


def _renewed(agent: Agent, read_access: Callable[[], Access], known: Access) -> Access:
    try:
        fresh = read_access()
    except (OSError, ConvoyError):
        return known
    if fresh != known:
        agent.client.close()
        agent.client = MemberClient(fresh)
    return fresh
