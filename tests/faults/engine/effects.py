"""What a schedule really did: which actions of users, members and the clock the product carried out in a world.

A request that is refused each time strikes at nothing, and no invariant breaks. So a run fails in which an action never had its
effect. Each is read from what the judge saw in rows, members and the timeline, not from the answer to the request.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.engine import objects
from tests.faults.engine.objects import Object
from tests.faults.engine.rows import Rows
from tests.faults.engine.users import CAREFUL, DIVIDED, ELASTIC_PODS, NIGHT, NOTICED, STATE

NEEDED_OF = {
    "suspended": 6,
    "resumed": 6,
    "state preserved": 6,
    "shrunk": 6,
    "grown": 6,
    "divided": 6,
    "reclaimed for another queue": 6,
    "stopped by notice": 6,
    "started in its window": 6,
    "given up": 6,
    "deleted": 6,
    "left its cluster": 6,
    "waited for its cluster": 150,
}
"""In a run of so many schedules that count each of these must have been seen once. The last needs a member that is struck
while a careful job is there."""
_OF_TIMELINE = {
    ("paused", "Suspended"): "suspended",
    ("paused", "Resumed"): "resumed",
    ("paused", "WaitsForCluster"): "waited for its cluster",
    ("lender", "Reclaimed"): "reclaimed for another queue",
}


@dataclass
class Effects:
    seen: set[str] = field(default_factory=set)
    _sizes: list[int] = field(default_factory=list)
    """Of the copies of the elastic job, in the order in which they were seen."""

    def look(self, copies: Iterable[Object], rows: Rows | None) -> None:
        for copy in copies:
            self._note_copy(copy)
        for job in rows.jobs if rows is not None else ():
            if job["name"] in DIVIDED and len(job.get("shares") or ()) > 1:
                self.seen.add("divided")
            if job["name"] == "looping" and job["state"] == "Failed":
                self.seen.add("given up")
            if job["name"] == "doomed" and job["deleting_at"]:
                self.seen.add("deleted")
        outcomes = {attempt["outcome"] for attempt in rows.attempts} if rows is not None else set()
        if outcomes & {"Lost", "Failed"}:
            self.seen.add("left its cluster")

    def _note_copy(self, copy: Object) -> None:
        name, key = objects.name(copy), objects.key(copy)
        if key is None:
            return
        if name in CAREFUL and (copy["metadata"].get("annotations") or {}).get(STATE):
            self.seen.add("state preserved")
        if name == NIGHT:
            self.seen.add("started in its window")
        if name == "elastic" and objects.is_live(copy):
            self._note_size(objects.pods_asked(copy))

    def _note_size(self, pods: int) -> None:
        if self._sizes[-1:] != [pods]:
            self._sizes.append(pods)
        _, smaller, larger = ELASTIC_PODS
        if smaller in self._sizes:
            self.seen.add("shrunk")
            if larger in self._sizes[self._sizes.index(smaller) :]:
                self.seen.add("grown")

    def read_timeline(self, lines: Iterable[Mapping[str, Any]]) -> None:
        reasons = {(line["regarding_name"], line["reason"]) for line in lines}
        self.seen |= {effect for line, effect in _OF_TIMELINE.items() if line in reasons}
        if {(NOTICED, "ReclaimNotice"), (NOTICED, "Reclaimed")} <= reasons:
            self.seen.add("stopped by notice")


def missing(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The actions that had an effect in no schedule of a run, and should have by their number."""
    seen = {effect for verdict in verdicts for effect in verdict.get("effects", ())}
    judged = sum(not verdict["starved"] for verdict in verdicts)
    return [effect for effect, needed in NEEDED_OF.items() if judged >= needed and effect not in seen]


def table(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: in how many schedules each action had its effect. Reports older than this count are left out."""
    counted = [set(verdict["effects"]) for verdict in verdicts if "effects" in verdict]
    rows = [f"| {effect} | {sum(effect in seen for seen in counted)} of {len(counted)} |" for effect in NEEDED_OF]
    return "\n".join(["| what was done | seen in |", "|---|---|", *rows])
