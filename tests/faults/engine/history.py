"""What the judge has seen of works and copies at which moment, and requests that came when nobody was to send them any more.

A worker that was stopped for longer than its claim goes on where it stood. Whether it then asks the member, although another
worker has taken over and is done, is seen from the state that its work had before the request arrived.
"""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.faults.engine.wire import AGAIN, Write

Key = tuple[str, int]
_TO_SEND = ("Pending", "Sending")
_SENT, _GONE = "Applied", "Gone"
_IN_FLIGHT_S = 0.7
"""A request may be on its way while a user or a member's report gives the work something else to do."""


class History:
    def __init__(self) -> None:
        self._states: dict[Key, list[tuple[float, str]]] = defaultdict(list)
        self._seen: dict[str, tuple[Key, float]] = {}
        """By the uid of a copy: whose it is, and when it was last seen."""

    def note_works(self, at: float, works: Iterable[Mapping[str, object]]) -> None:
        """``at``: later than the moment of which the rows are."""
        now = {(str(work["job_uid"]), int(str(work["attempt"]))): str(work["state"]) for work in works}
        # A work whose row is deleted with its job has nothing to do any more either.
        for key in now.keys() | self._states.keys():
            state, states = now.get(key, _GONE), self._states[key]
            if not states or states[-1][1] != state:
                states.append((at, state))

    def note_copy(self, at: float, object_uid: str, key: Key) -> None:
        self._seen[object_uid] = key, at

    def late_writes(self, writes: Sequence[Write], struck: frozenset[str]) -> Iterator[str]:
        """Requests that arrived when another worker had done what they ask. A member that was struck may have kept them."""
        for write in (write for write in writes if write.member not in struck and write.sender != AGAIN):
            if write.method == "POST":
                yield from self._late_creation(write)
            elif write.object_uid in self._seen:
                yield from self._late_end(write)

    def never_created(self, writes: Sequence[Write]) -> Iterator[str]:
        """Works that count as sent although their member has made no copy for them, but had that of another attempt."""
        made = {(write.uid, write.attempt) for write in writes if write.method == "POST" and write.status == 201}
        names = {write.uid: write.name for write in writes}
        for key, states in self._states.items():
            if key not in made and any(state == _SENT for _, state in states):
                yield f"attempt {key[1]} of {names.get(key[0], key[0])} was recorded as sent, and no member has created it"

    def _late_creation(self, write: Write) -> Iterator[str]:
        before = self._before((write.uid, write.attempt), write.at)
        if any(state == _SENT for _, state in before):
            yield f"{write.sender} sent attempt {write.attempt} of {write.name} to {write.member} after it was recorded as sent"
        elif before and before[-1][1] not in _TO_SEND and before[-1][0] < write.at - _IN_FLIGHT_S:
            state = before[-1][1]
            yield f"{write.sender} sent attempt {write.attempt} of {write.name} to {write.member}, while its work was {state}"

    def _late_end(self, write: Write) -> Iterator[str]:
        key, last_seen = self._seen[write.object_uid]
        before = self._before(key, write.at)
        is_gone = bool(before) and before[-1][1] == _GONE and before[-1][0] < write.at - _IN_FLIGHT_S
        if is_gone and last_seen < write.at - _IN_FLIGHT_S:
            yield f"{write.sender} asked {write.member} to {write.method} {write.name} after its work was Gone"

    def _before(self, key: Key, at: float) -> list[tuple[float, str]]:
        states = self._states.get(key, [])
        return states[: bisect.bisect_left(states, (at, ""))]
