"""One thing that a runtime says in its log: of bounded size, whatever the line was."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any


class Kind(StrEnum):
    RENDEZVOUS = "Rendezvous"
    RESTART = "Restart"
    """The processes of a node were started again, in the same pod."""
    MEMBERSHIP = "Membership"
    """A node came or went, and the processes were started again because of it."""
    RELAUNCH = "Relaunch"
    """A pod was replaced."""
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"
    NODE_CHECK = "NodeCheck"
    STRAGGLER = "Straggler"
    CHECKPOINT = "Checkpoint"


@dataclass(frozen=True, slots=True)
class Fact:
    kind: Kind
    at: datetime | None = None
    pod: str = ""
    node: str = ""
    round: int | None = None
    rank: int | None = None
    """Of a rendezvous of dlrover that of the node, else the global rank of the process."""
    world_size: int | None = None
    seconds: float | None = None
    restarts: int | None = None
    remaining: int | None = None
    """Restarts that are left; of a relaunch, of the rank's pod."""
    exit_code: int | None = None
    step: int | None = None
    tier: str = ""
    """memory or disk."""
    ok: bool | None = None
    shard: int | None = None
    """Of a checkpoint that dlrover saves: the shard, by the rank that has it."""
    shards: int | None = None
    """Shards that the whole checkpoint has."""
    committed: bool | None = None
    """Whether all shards of the checkpoint are there, so that a training may begin from it."""
    message: str = ""

    @property
    def mark(self) -> str:
        """The same for the same line, however often it is read, also when the step of a checkpoint has become certain."""
        at = self.at.isoformat() if self.at else ""
        step = "" if self.tier == "memory" else self.step
        parts = (
            self.pod,
            self.kind,
            at,
            self.tier,
            step,
            self.shard,
            self.rank,
            self.round,
            self.restarts,
            self.message,
        )
        return "|".join(map(str, parts))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Fact":
        at = stored.get("at")
        known = {**stored, "kind": Kind(stored["kind"]), "at": datetime.fromisoformat(at) if at else None}
        return cls(**known)

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def by_key(facts: Iterable[Fact]) -> dict[str, Fact]:
    """The facts by a key that stays when their logs are read again. Lines that are alike in everything are counted."""
    seen: Counter[str] = Counter()
    keyed = {}
    for fact in facts:
        mark = fact.mark
        keyed[sha256(f"{seen[mark]}|{mark}".encode("utf-8", "replace")).hexdigest()[:40]] = fact
        seen[mark] += 1
    return keyed
