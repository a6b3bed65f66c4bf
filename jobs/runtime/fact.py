"""One thing that a runtime says in its log: of bounded size, whatever the line was."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
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

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}
