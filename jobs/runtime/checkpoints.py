"""A job's checkpoints, put together from what its pods say: the shards of a step, how long they took, whether it is whole."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobs.runtime.fact import Fact, Kind

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    step: int
    tier: str
    """memory or disk; what a script calls it."""
    at: datetime | None
    """When its last shard, or the whole, was saved."""
    pod: str
    """The first that said so."""
    ok: bool | None
    seconds: float | None
    """The longest of its shards: in memory the training waits for so long, to disk it does not."""
    shards_done: int | None
    shards_total: int | None
    """None: the runtime does not say."""
    committed: bool | None
    """Whether all shards of it are on disk, so that a training can begin from it; None: the runtime does not say."""


def summarize(facts: Iterable[Fact]) -> list[Checkpoint]:
    """The checkpoints, oldest first."""
    saves: dict[tuple[int, str], list[Fact]] = {}
    for fact in facts:
        if fact.kind is Kind.CHECKPOINT and fact.step is not None:
            saves.setdefault((fact.step, fact.tier), []).append(fact)
    whole = [_whole(step, tier, of_step) for (step, tier), of_step in saves.items()]
    return sorted(whole, key=lambda each: (each.at or _LONG_AGO, each.step))


def _whole(step: int, tier: str, saves: Sequence[Fact]) -> Checkpoint:
    shards = [fact for fact in saves if fact.shard is not None]
    done = {(fact.pod, fact.shard) for fact in shards if fact.ok}
    committed = True if any(fact.committed for fact in saves) else None
    outcomes = [fact.ok for fact in saves if fact.ok is not None]
    return Checkpoint(
        step,
        tier,
        at=max((fact.at for fact in saves if fact.at), default=None),
        pod=saves[0].pod,
        ok=all(outcomes) if outcomes else None,
        seconds=max((fact.seconds for fact in saves if fact.seconds is not None), default=None),
        shards_done=len(done) if shards else None,
        shards_total=max((fact.shards for fact in saves if fact.shards), default=None),
        committed=committed or (False if shards and tier == "disk" else None),
    )
