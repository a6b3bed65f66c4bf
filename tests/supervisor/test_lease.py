"""One of two supervisors acts: by a lease in memory, with clocks that are moved."""

import asyncio
import copy
from typing import Any

from fleet.member.errors import MemberAway, MemberChanged, MemberExists, MemberMissing
from supervisor.lease import DURATION_S, Lease


class Leases:
    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.away = False
        self.version = 0

    async def get(self, resource: object, namespace: str, name: str) -> dict[str, Any]:
        if self.away:
            raise MemberAway("away")
        if self.lease is None:
            raise MemberMissing("none", status=404)
        return copy.deepcopy(self.lease)

    async def create(self, resource: object, namespace: str, body: dict[str, Any]) -> None:
        if self.lease is not None:
            raise MemberExists("there", status=409)
        self._keep(body)

    async def replace(self, resource: object, namespace: str, name: str, body: dict[str, Any]) -> None:
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise MemberChanged("changed", status=409)
        self._keep(body)

    def _keep(self, body: dict[str, Any]) -> None:
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)


class Two:
    def __init__(self) -> None:
        self.leases, self.now = Leases(), 100.0
        self.one, self.other = (Lease(self.leases, name, monotonic=lambda: self.now) for name in ("one", "other"))  # type: ignore[arg-type]

    def renew(self, lease: Lease) -> bool:
        return asyncio.run(lease.renew())


def test_it_acts_alone():
    two = Two()
    assert two.renew(two.one) and not two.renew(two.other)
    two.now += DURATION_S - 1
    assert two.renew(two.one) and not two.renew(two.other)
    two.now += DURATION_S - 1
    assert two.one.is_held and not two.renew(two.other)


def test_it_takes_over_from_one_that_is_silent():
    two = Two()
    two.renew(two.one)
    two.renew(two.other)
    two.now += DURATION_S + 1
    assert not two.one.is_held
    assert two.renew(two.other) and not two.renew(two.one)


def test_it_stops_acting_before_another_may_begin_when_the_member_is_away():
    two = Two()
    two.renew(two.one)
    two.leases.away = True
    two.now += 5
    assert two.renew(two.one), "it is still ours"
    two.now += DURATION_S
    assert not two.renew(two.one)


def test_it_begins_at_once_after_one_that_has_let_go():
    two = Two()
    two.renew(two.one)
    asyncio.run(two.one.release())
    assert two.renew(two.other)
    assert two.leases.lease is not None and two.leases.lease["spec"]["leaseTransitions"] == 2
