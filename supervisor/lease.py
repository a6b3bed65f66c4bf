"""Which of several supervisors of a member acts, and the sign that one lives: a Lease, judged by our own clock.

A Lease whose ``renewTime`` has not changed for its duration, as seen from here, is free: clocks are not compared.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleet.kube.resources import LEASES
from fleet.member.client import Object
from fleet.member.errors import MemberError, MemberExists, MemberMissing
from supervisor.member import Member

NAMESPACE, NAME = "arena-system", "elastic-job-supervisor"
DURATION_S, RENEWAL_S = 15, 5.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Lease:
    member: Member
    identity: str
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc_now
    _renewed: float | None = None
    """When we renewed it last; None: it is not ours."""
    _seen: tuple[str, str, float] = field(default=("", "", 0.0))
    """Holder, renewal, and since when both are so."""

    @property
    def is_held(self) -> bool:
        return self._renewed is not None and self.monotonic() - self._renewed < DURATION_S

    async def renew(self) -> bool:
        """Takes or renews it; returns whether it is ours."""
        asked = self.monotonic()
        try:
            taken = await self._renew(asked)
        except MemberError:
            return self.is_held
        self._renewed = asked if taken else None
        return taken

    async def _renew(self, asked: float) -> bool:
        try:
            lease = await self.member.get(LEASES, NAMESPACE, NAME)
        except MemberMissing:
            try:
                await self.member.create(LEASES, NAMESPACE, self._document({}))
            except MemberExists:
                return False
            return True
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") != self.identity and not self._is_free(spec, asked):
            return False
        await self.member.replace(LEASES, NAMESPACE, NAME, {**self._document(spec), "metadata": lease["metadata"]})
        return True

    def _is_free(self, spec: Object, asked: float) -> bool:
        holder, renewal = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
        if (holder, renewal) != self._seen[:2]:
            self._seen = (holder, renewal, asked)
        return not holder or asked - self._seen[2] > float(spec.get("leaseDurationSeconds") or DURATION_S)

    async def release(self) -> None:
        """Lets the next one begin at once."""
        if not self.is_held:
            return
        try:
            lease = await self.member.get(LEASES, NAMESPACE, NAME)
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"]["holderIdentity"] = ""
                await self.member.replace(LEASES, NAMESPACE, NAME, lease)
        except MemberError:
            return

    def _document(self, before: Object) -> Object:
        now = self.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        same = before.get("holderIdentity") == self.identity
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": DURATION_S,
            "acquireTime": before.get("acquireTime") if same else now,
            "renewTime": now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (not same),
        }
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": spec,
        }
