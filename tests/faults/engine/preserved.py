"""Whether later attempts get the state that earlier ones reported: ``statePreservation``, with the start time as the state.

What a job's row has shown as its status was kept in the same moment, so an attempt that is sent later has it, or a newer value.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.faults.engine import objects
from tests.faults.engine.objects import Key, Object
from tests.faults.engine.users import CAREFUL, STATE

_FIELD = "startTime"


class Preserved:
    def __init__(self) -> None:
        self._reporters: dict[tuple[str, str], int] = {}
        """By job and value: the attempt whose copy has shown it in its member."""
        self._reported: dict[str, set[str]] = defaultdict(set)
        """By job: the values that its row has shown."""
        self._judged: set[Key] = set()

    def note_rows(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        for job in jobs:
            if job["name"] in CAREFUL and (value := (job.get("status") or {}).get(_FIELD)):
                self._reported[job["uid"]].add(value)

    def faults(self, copies: Iterable[Object]) -> Iterator[str]:
        """Of the copies that are seen for the first time. The rows of this moment are noted after it."""
        for copy in copies:
            key = objects.key(copy)
            if key is None or objects.name(copy) not in CAREFUL:
                continue
            if value := (copy.get("status") or {}).get(_FIELD):
                self._reporters[key[0], value] = key[1]
            if key not in self._judged:
                self._judged.add(key)
                yield from self._of_copy(key, copy)

    def _of_copy(self, key: Key, copy: Object) -> Iterator[str]:
        uid, attempt = key
        numbers = [self._reporters.get((uid, value), 0) for value in self._reported[uid]]
        latest = max((number for number in numbers if number < attempt), default=0)
        state = (copy["metadata"].get("annotations") or {}).get(STATE)
        of = self._reporters.get((uid, state), latest) if state else 0
        if of < latest:
            yield f"attempt {attempt} of {objects.name(copy)} has the state of attempt {of}, and attempt {latest} had reported"
        if of >= attempt:
            yield f"attempt {attempt} of {objects.name(copy)} has the state of attempt {of}"
