"""The shares of a job that is divided: who has how many pods, what is lost, and how the whole stands.

A share is an attempt: its number is the fencing token of its copy. Kept as a list of plain values in the job's row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from jobs.core.division.replicas import webster
from jobs.core.life.shares import SHARE, SHARE_LIVE, ShareEvent, ShareState


@dataclass(frozen=True, slots=True)
class Share:
    attempt: int
    cluster: str
    replicas: int
    completions: int
    """0: not counted."""
    state: ShareState = ShareState.PLACED
    status: Mapping[str, Any] = field(default_factory=dict)
    unhealthy_since: str = ""
    had: tuple[int, int] = (0, 0)
    """Pods and completions, before it was lost."""

    @property
    def is_live(self) -> bool:
        return self.state in SHARE_LIVE

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "state": self.state.value}


def of_stored(entries: Iterable[Mapping[str, Any]]) -> list[Share]:
    return [Share(**{**each, "state": ShareState(each["state"]), "had": tuple(each["had"])}) for each in entries]


def stored(shares: Iterable[Share]) -> list[dict[str, Any]]:
    return [share.as_json() for share in shares]


def after(share: Share, event: ShareEvent, **fields: Any) -> Share:
    """The share after the event; raises `IllegalTransition` where it cannot happen."""
    return replace(share, state=ShareState(SHARE.after(share.state, event)), **fields)


def missing(replicas: int, completions: int, shares: Sequence[Share]) -> tuple[int, int]:
    """Pods and completions that no share has; (0, 0) when nothing is missing."""
    holding = [share for share in shares if share.state is not ShareState.LOST]
    pods = max(replicas - sum(share.replicas for share in holding), 0)
    if not completions:
        return pods, 0
    left = max(completions - sum(share.completions for share in shares), 0)
    return min(pods, left), left


def may_return(replicas: int, completions: int, shares: Sequence[Share], lost: Share) -> bool:
    """Whether no other shares have taken over what the lost one had."""
    others = [share for share in shares if share.attempt != lost.attempt]
    return missing(replicas, completions, others)[0] >= lost.had[0] > 0


def deal_shares(pods: Mapping[str, int], completions: int, first_attempt: int, event: ShareEvent) -> list[Share]:
    """New shares: completions are divided as the pods are, none less than its pods; the largest share comes first."""
    order = sorted(pods, key=lambda name: (-pods[name], name))
    done = webster(completions, pods, pods) if completions else dict.fromkeys(pods, 0)
    new = ShareState(SHARE.target(event))
    return [Share(first_attempt + i, name, pods[name], done[name], new) for i, name in enumerate(order)]


def as_lost(share: Share, event: ShareEvent) -> Share:
    """The share after it has left or was stopped: it keeps what it had completed, and nothing else."""
    succeeded = int(share.status.get("succeeded") or 0)
    counts = {"succeeded": succeeded} if succeeded else {}
    done = min(succeeded, share.completions)
    had = (share.replicas, share.completions)
    return after(share, event, status=counts, unhealthy_since="", had=had, replicas=0, completions=done)


def regained(share: Share, event: ShareEvent) -> Share:
    """A lost share whose copy runs on or has succeeded, and that nothing has replaced yet."""
    replicas, completions = share.had
    return after(share, event, replicas=replicas, completions=completions, had=(0, 0))


def is_done_in_part(share: Share) -> bool:
    """Whether the share has completed something that is not to be done again."""
    return share.state is ShareState.SUCCEEDED or bool(share.state is ShareState.LOST and share.completions)


def counting(entries: Iterable[Mapping[str, Any]], latest: int) -> list[int]:
    """The numbers of the attempts that count: of the shares that are not lost, or of a job that runs whole the latest."""
    shares = of_stored(entries)
    return [share.attempt for share in shares if share.state is not ShareState.LOST] if shares else [latest]


def number_on(entries: Iterable[Mapping[str, Any]], cluster: str, latest: int) -> int:
    """The number of the attempt on that cluster."""
    return next((each.attempt for each in of_stored(entries) if each.is_live and each.cluster == cluster), latest)


def divisible(roles: Sequence[Mapping[str, Any]]) -> int | None:
    """How many completions a job of these stored roles divides, 0: it does not count them; None: it is never divided."""
    return roles[0].get("divides") if roles else None


def standing(entries: Iterable[Mapping[str, Any]]) -> list[Share]:
    """The shares that are not lost, of stored ones."""
    return [share for share in of_stored(entries) if share.state is not ShareState.LOST]


def find(entries: Iterable[Mapping[str, Any]], attempt: int) -> Share | None:
    """The share of that attempt, in whatever state it is."""
    return next((share for share in of_stored(entries) if share.attempt == attempt), None)


def find_live_share(shares: Iterable[Share], attempt: int) -> Share | None:
    """The live share of that attempt."""
    return next((share for share in shares if share.attempt == attempt and share.is_live), None)


def replace_share(shares: Iterable[Share], changed: Share) -> list[Share]:
    return [changed if share.attempt == changed.attempt else share for share in shares]


def summary(shares: Iterable[Share]) -> str:
    """``4 on north (Running), 2 on south (Placed)``."""
    named = (f"{s.replicas} on {s.cluster} ({s.state.value})" for s in shares if s.state is not ShareState.LOST)
    return ", ".join(named)
