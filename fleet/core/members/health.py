"""Whether a member is well: one look's outcome and the past become a state, and a state becomes taints.

- Ready: it answers and says it is well.
- NotReady: it answers, but is not well or refuses our credentials. Taint ``cluster.karmada.io/not-ready``.
- Unknown: it does not answer. Taint ``cluster.karmada.io/unreachable``.

The taint has both effects when the member is at fault: nothing new is placed there, and jobs leave once they tolerate it no
more. Where the fault is ours (refused credentials, or so many members at once that it is our own network) it has NoSchedule
only: what runs there runs on, and what cannot be seen is not judged.

One good look makes a member Ready; only looks that fail without a break for the whole grace make it anything else. The
grace is counted from the first failed look after a pause of our own, which is not taken for silence of the member; who keeps
the looks begins the count anew after one. A clock that jumps backwards only starts the count again. Knows no database and no
HTTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from fleet.core.members.disruption import Disruption


class State(StrEnum):
    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


NOT_READY_TAINT = "cluster.karmada.io/not-ready"
UNREACHABLE_TAINT = "cluster.karmada.io/unreachable"
_TAINT = {State.NOT_READY: NOT_READY_TAINT, State.UNKNOWN: UNREACHABLE_TAINT}
KEYS = frozenset(_TAINT.values())
EFFECTS = ("NoSchedule", "NoExecute")
CREDENTIALS_REFUSED = "CredentialsRefused"
CREDENTIALS_UNREADABLE = "CredentialsUnreadable"
DISRUPTION = "DisruptionSuspected"
"""Reasons of a member that cannot be observed because of a fault of Convoy."""
UNJUDGED = frozenset({CREDENTIALS_REFUSED, CREDENTIALS_UNREADABLE, DISRUPTION})
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a member found."""

    answered: bool
    healthy: bool
    reason: str = "ClusterReady"
    message: str = "The cluster answers and is ready."
    raw: str = ""
    """What the network said, word for word."""

    @property
    def state(self) -> State:
        if self.healthy:
            return State.READY
        return State.NOT_READY if self.answered else State.UNKNOWN


@dataclass(frozen=True, slots=True)
class Health:
    """Where a member stands; ``failing_since`` is None while looks succeed."""

    state: State
    reason: str
    message: str
    since: datetime
    failing_since: datetime | None = None

    @property
    def evicts(self) -> bool:
        """Whether the member itself is at fault, so that its jobs are to leave it."""
        return self.state is not State.READY and self.reason not in UNJUDGED


def spared(health: Health, disruption: Disruption) -> Health:
    """The same member while it is taken for one of many that are cut off from us."""
    why = (
        f"; its jobs are not moved: {disruption.failing} of {disruption.members} clusters stopped answering together, which"
        " points at this control plane's own network"
    )
    message = health.message[: _LONGEST_MESSAGE - len(why)] + why
    return replace(health, reason=DISRUPTION, message=message)


def after(health: Health, look: Look, now: datetime, grace: timedelta) -> Health:
    """Where the member stands after this look."""
    if look.healthy:
        return _moved(health, look, now, None)
    failing_since = min(health.failing_since or now, now)
    if health.state is State.READY and now - failing_since < grace:
        return Health(health.state, health.reason, health.message, health.since, failing_since)
    return _moved(health, look, now, failing_since)


def _moved(health: Health, look: Look, now: datetime, failing_since: datetime | None) -> Health:
    since = health.since if look.state is health.state else now
    return Health(look.state, look.reason, look.message, since, failing_since)


Taint = dict[str, str]


def taints(present: Sequence[Taint], health: Health, now: datetime) -> list[Taint]:
    """The taints a member has in this state: people's own stay, health's own come with the time and go.

    One of a time that is yet to come is from before a clock stepped back, and begins now: it would be tolerated until then.
    """
    key = _TAINT.get(health.state)
    effects = [e for e in EFFECTS if key and (e != "NoExecute" or health.evicts)]
    kept = [t for t in present if t["key"] not in _TAINT.values() or (t["key"] == key and t["effect"] in effects)]
    has = {(t["key"], t["effect"]) for t in kept}
    missing = [effect for effect in effects if (key, effect) not in has]
    kept = [t | {"timeAdded": now.isoformat()} if _is_of_the_future(t, now) else t for t in kept]
    return kept + [{"key": key, "value": "", "effect": e, "timeAdded": now.isoformat()} for e in missing if key]


def _is_of_the_future(taint: Taint, now: datetime) -> bool:
    at = taint.get("timeAdded")
    return bool(at and datetime.fromisoformat(at) > now)
