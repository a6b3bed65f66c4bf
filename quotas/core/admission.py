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
from quotas.core.ledger import Ask, Charge, Held, Ledger, Units


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


@dataclass(frozen=True, slots=True)
class _Block:
    """The first broken limit: its place on the way up, and the resource's column."""

    step: int
    column: int
    bound: Bound
    promised: bool
    """Whether the step below stays within its min."""
    kept: int = 0


def ask(ledger: Ledger, leaf: str, amounts: Amounts, *, preemptible: bool = True) -> Answer:
    """Whether a job with these amounts (`quotas.core.amounts.of_job`) fits as things stand; charges nothing."""
    asked, way, limits = ledger.ask(amounts), ledger.way[leaf], ledger.limits[leaf]
    used = ledger.held.used[way].tolist()
    firm = used if preemptible else ledger.held.firm[way].tolist()
    block = _block(ledger, leaf, asked, used, None if preemptible else firm, ledger.held)
    if block is None:
        return _BORROWS if _over(asked, limits.floor, used) else _WITHIN_MIN
    never = _block(ledger, leaf, asked, limits.idle, None if preemptible else limits.idle, ledger.idle)
    if never is not None:
        return _refused(ledger, leaf, dict(asked), never, Code.NEVER_FITS, limits.idle)
    code = Code.MAX_JOBS_REACHED if ledger.resources[block.column] == MAX_JOBS else Code.QUOTA_EXCEEDED
    return _refused(ledger, leaf, dict(asked), block, code, firm if block.bound is Bound.MIN else used)


def most(ledger: Ledger, leaf: str, amounts: Amounts) -> int:
    """No more jobs with these amounts fit than this, whoever else is admitted meanwhile; as few may as none."""
    asked, used = ledger.ask(amounts), ledger.held.used[ledger.way[leaf]].tolist()
    steps = zip(ledger.limits[leaf].max, used, strict=True)
    room = min(((high[i] - has[i]) // amount for high, has in steps for i, amount in asked), default=UNLIMITED)
    return max(room, 0)


def short(ledger: Ledger, asked: Units, way: Units) -> NDArray[np.bool_]:  # [step, resource]
    """Where on the way up the max has no room for what is asked, with what idle siblings keep back counted as used."""
    over = np.asarray((asked > ledger.max[way] - ledger.held.used[way]) & (asked > 0))
    if not ledger.lends_all:
        grows = growth(ledger, ledger.held, asked, way)
        over |= (grows > ledger.max[way] - ledger.held.claims[way]) & (grows > 0)
    return over


def within_min(ledger: Ledger, asked: Units, way: Units) -> NDArray[np.bool_]:  # [step, resource]
    """Where on the way up what is asked stays within min, with what idle children keep back counted as used."""
    grows = asked if ledger.lends_all else growth(ledger, ledger.held, asked, way)
    return np.asarray(grows <= ledger.min[way] - ledger.held.claims[way])


def is_promised(ledger: Ledger, charge: Charge) -> bool:
    """Whether the job's leaf stays within min with it, in whatever of it anybody is promised."""
    row = int(ledger.way[charge.leaf][0])
    low, used = ledger.limits[charge.leaf].min[0], ledger.held.claims[row].tolist()
    return all(amount <= low[i] - used[i] for i, amount in ledger.ask(charge.amounts) if ledger.promised[i])


def promised_below(ledger: Ledger, charge: Charge, no: Refused) -> bool:
    """Whether the job stays within some min on its way below the node that refuses it, in what is short there."""
    column, limits = ledger.column[no.resource], ledger.limits[charge.leaf]
    grows, claims = charge.amounts.get(no.resource, 0), ledger.held.claims[ledger.way[charge.leaf], column].tolist()
    for row, low, kept, now in zip(ledger.way[charge.leaf].tolist(), limits.min, limits.kept, claims, strict=True):
        if row == ledger.row[no.path]:
            break
        if grows <= low[column] - now:
            return True
        grows = max(now + grows, kept[column]) - max(now, kept[column])
    return False


def comes_before(ledger: Ledger, one: Charge, other: Charge) -> bool:
    """Whether the one asks for what its side is promised, where their ways part, and the other would borrow some of that."""
    wanted = ledger.vector(other.amounts)
    claims = ledger.promised & (ledger.vector(one.amounts) > 0) & (wanted > 0)
    return is_within_beside(ledger, one, other) and not _within_apart(ledger, other, one)[claims].all()


def is_within_beside(ledger: Ledger, one: Charge, other: Charge) -> bool:
    """Whether the one's side, where their ways part, stays within min with it; no two jobs of one leaf part."""
    if one.leaf == other.leaf:
        return False
    claims = ledger.promised & (ledger.vector(one.amounts) > 0)
    return bool(_within_apart(ledger, one, other)[claims].all())


def _within_apart(ledger: Ledger, one: Charge, other: Charge) -> NDArray[np.bool_]:  # [resource]
    """Of what the one's side stays within min with it, at the node just below where its way and the other's part."""
    way, others = ledger.way[one.leaf], set(ledger.way[other.leaf].tolist())
    step = next(step for step, row in enumerate(way.tolist()) if row in others)
    return np.asarray(within_min(ledger, ledger.vector(one.amounts), way)[step - 1])


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


def _block(
    ledger: Ledger, leaf: str, asked: Ask, used: list[list[int]], firm: list[list[int]] | None, held: Held
) -> _Block | None:
    """``firm`` is given for a job that may not be preempted."""
    limits = ledger.limits[leaf]
    if firm is not None and (over := _over(asked, limits.floor, firm)):
        return _Block(*over, Bound.MIN, promised=False)
    if not ledger.lends_all:
        return _kept_block(ledger, leaf, asked, used, held)
    if (over := _over(asked, limits.max, used)) is None:
        return None
    step, column = over
    room = limits.min[step - 1][column] - used[step - 1][column]
    return _Block(step, column, Bound.MAX, promised=step > 0 and dict(asked)[column] <= room)


def _over(asked: Ask, limits: list[list[int]], used: list[list[int]]) -> tuple[int, int] | None:
    """(step, column) of the first limit that is broken."""
    for step, (most, has) in enumerate(zip(limits, used, strict=True)):
        for column, amount in asked:
            if amount > most[column] - has[column]:
                return step, column
    return None


def _kept_block(ledger: Ledger, leaf: str, asked: Ask, used: list[list[int]], held: Held) -> _Block | None:
    """As the max of each step, with what idle siblings keep back counted as used: `growth`, in plain numbers."""
    limits, claims = ledger.limits[leaf], held.claims[ledger.way[leaf]].tolist()
    grows, within = dict(asked), dict.fromkeys(ledger.column.values(), False)
    for step, (low, high, kept) in enumerate(zip(limits.min, limits.max, limits.kept, strict=True)):
        has, claimed = used[step], claims[step]
        for column, amount in asked:
            grow, now = grows[column], claimed[column]
            if amount > high[column] - has[column] or (0 < grow > high[column] - now):
                hidden = max(now + grow - amount - has[column], 0)
                return _Block(step, column, Bound.MAX, within[column], hidden)
            within[column] = grow <= low[column] - now
            grows[column] = max(now + grow, kept[column]) - max(now, kept[column])
    return None


def _refused(
    ledger: Ledger, leaf: str, asked: dict[int, int], block: _Block, code: Code, used: list[list[int]]
) -> Refused:
    way, limits, column = ledger.way[leaf], ledger.limits[leaf], block.column
    most = limits.max if block.bound is Bound.MAX else limits.min
    return Refused(
        code=code,
        path=ledger.tree.nodes[int(way[block.step])].path,
        resource=ledger.resources[column],
        asked=min(asked[column], UNLIMITED),
        used=used[block.step][column],
        kept=block.kept,
        limit=most[block.step][column],
        bound=block.bound,
        entitled=code is not Code.NEVER_FITS and block.promised,
    )
