"""May this job run now? Asked of its leaf and every ancestor at once; a no is a value that names where, what and how much.

A preemptible job may borrow: it is limited by ``max`` alone, and by what idle siblings keep back (lendlimit). One that may not
be preempted is limited by ``min`` as well, since what is borrowed may be taken back. Nothing is ever above ``max``. Reclaim
is not decided here: a refusal only says whether the asker is `entitled` to have room made.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from quotas.core.amounts import MAX_JOBS, UNLIMITED, Amounts, told
from quotas.core.ledger import Held, Ledger, Units


class Code(StrEnum):
    QUOTA_EXCEEDED = "QuotaExceeded"
    MAX_JOBS_REACHED = "MaxJobsReached"
    NEVER_FITS = "NeverFits"


class Bound(StrEnum):
    """Which limit said no."""

    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Admitted:
    borrows: bool
    """Whether some node of the path is above its min with this job."""


@dataclass(frozen=True, slots=True)
class Refused:
    code: Code
    path: str
    """The node whose limit said no: the first one from the leaf up."""
    resource: str
    asked: int
    used: int
    kept: int
    """What idle siblings keep back for themselves out of the same limit."""
    limit: int
    bound: Bound
    entitled: bool
    """The way below ``path`` stays within its min: others borrow what the asker was promised, and reclaim would help."""

    @property
    def message(self) -> str:
        limit = f"{self.path} has {self.bound.value} {told(self.resource, self.limit)}"
        if self.code is Code.NEVER_FITS:
            less = f", of which {told(self.resource, self.kept)} are kept back" if self.kept else ""
            return f"asks for {told(self.resource, self.asked)} and can never have it: {limit}{less}"
        kept = f" and {told(self.resource, self.kept)} kept back" if self.kept else ""
        return f"asks for {told(self.resource, self.asked)}: {limit}, with {told(self.resource, self.used)} used{kept}"


Answer = Admitted | Refused
_BORROWS, _WITHIN_MIN = Admitted(borrows=True), Admitted(borrows=False)
_NOTHING = -UNLIMITED


@dataclass(frozen=True, slots=True)
class _Block:
    """The first broken limit: its place on the way up, and the resource's column."""

    step: int
    column: int
    bound: Bound
    kept: int


def ask(ledger: Ledger, leaf: str, amounts: Amounts, *, preemptible: bool = True) -> Answer:
    """Whether a job with these amounts (`quotas.core.amounts.of_job`) fits as things stand; charges nothing."""
    asked, way = ledger.vector(amounts), ledger.way[leaf]
    block = _block(ledger, ledger.held, asked, way, preemptible)
    if block is None:
        return _BORROWS if (_wanted(asked) > ledger.floor[way] - ledger.held.used[way]).any() else _WITHIN_MIN
    never = _block(ledger, ledger.idle, asked, way, preemptible)
    if never is not None:
        return _refused(ledger, ledger.idle, asked, way, never, Code.NEVER_FITS)
    code = Code.MAX_JOBS_REACHED if ledger.resources[block.column] == MAX_JOBS else Code.QUOTA_EXCEEDED
    return _refused(ledger, ledger.held, asked, way, block, code)


def _wanted(asked: Units) -> Units:
    """Less than any limit where nothing is asked for: what is not asked for cannot stand in the way."""
    return np.where(asked > 0, asked, _NOTHING)


def short(ledger: Ledger, asked: Units, way: Units) -> NDArray[np.bool_]:  # [step, resource]
    """Where on the way up the max has no room for what is asked, with what idle siblings keep back counted as used."""
    wanted = _wanted(asked)
    over = np.asarray(wanted > ledger.max[way] - ledger.held.used[way])
    if not ledger.lends_all:
        grows = growth(ledger, ledger.held, asked, way)
        over |= (grows > ledger.max[way] - ledger.held.claims[way]) & (grows > 0)
    return over


def within_min(ledger: Ledger, asked: Units, way: Units) -> NDArray[np.bool_]:  # [step, resource]
    """Where on the way up what is asked stays within min, with what idle children keep back counted as used."""
    grows = asked if ledger.lends_all else growth(ledger, ledger.held, asked, way)
    return np.asarray(grows <= ledger.min[way] - ledger.held.claims[way])


def growth(ledger: Ledger, held: Held, asked: Units, way: Units) -> Units:  # [step, resource]
    """What the step below newly takes of each: less than what is asked where it had kept some back itself.

    And what it had kept back for itself it may always have.
    """
    grows = np.empty((len(way), len(asked)), dtype=np.int64)
    for step, row in enumerate(way.tolist()):
        grows[step] = asked
        claims = held.claims[row]
        asked = ledger.counted(claims + asked, row) - ledger.counted(claims, row)
    return grows


def _block(ledger: Ledger, held: Held, asked: Units, way: Units, preemptible: bool) -> _Block | None:
    wanted = _wanted(asked)
    if not preemptible:
        over = wanted > ledger.floor[way] - held.firm[way]
        if over.any():
            return _first(over, Bound.MIN)
    over = wanted > ledger.max[way] - held.used[way]
    if ledger.lends_all:
        return _first(over, Bound.MAX) if over.any() else None
    return _kept_block(ledger, held, asked, way, over)


def _first(over: NDArray[np.bool_], bound: Bound) -> _Block:
    step, column = divmod(int(over.argmax()), over.shape[1])
    return _Block(step, column, bound, 0)


def _kept_block(ledger: Ledger, held: Held, asked: Units, way: Units, over: NDArray[np.bool_]) -> _Block | None:
    """As the max of each step, with what idle siblings keep back counted as used."""
    grows, claims = growth(ledger, held, asked, way), held.claims[way]
    short = over | ((grows > ledger.max[way] - claims) & (grows > 0))
    if not short.any():
        return None
    step, column = divmod(int(short.argmax()), short.shape[1])
    kept = int(claims[step, column] + grows[step, column] - asked[column] - held.used[way[step], column])
    return _Block(step, column, Bound.MAX, max(kept, 0))


def _refused(ledger: Ledger, held: Held, asked: Units, way: Units, block: _Block, code: Code) -> Refused:
    row, column = int(way[block.step]), block.column
    limits, used = (ledger.max, held.used) if block.bound is Bound.MAX else (ledger.min, held.firm)
    entitled = code is not Code.NEVER_FITS and block.bound is Bound.MAX and block.step > 0
    return Refused(
        code=code,
        path=ledger.tree.nodes[row].path,
        resource=ledger.resources[column],
        asked=int(asked[column]),
        used=int(used[row, column]),
        kept=block.kept,
        limit=int(limits[row, column]),
        bound=block.bound,
        entitled=entitled and bool(within_min(ledger, asked, way)[block.step - 1, column]),
    )
