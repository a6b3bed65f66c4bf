"""Quota admission: whether a job fits its leaf and every ancestor. A refusal is a value that names the node, resource and
limit.

A preemptible job may borrow: it is limited by ``max`` alone, and by what idle siblings keep back (lendlimit). One that may not
be preempted is limited by ``min`` as well, since what is borrowed may be taken back. Nothing is ever above ``max``. Reclaim
is not decided here: a refusal only says whether the job is `entitled` to it.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from quotas.core.accounts import unstated
from quotas.core.accounts.ledger import Ask, Charge, Held, Ledger, Units
from quotas.core.trees.amounts import MAX_JOBS, UNLIMITED, Amounts, format_amount


class Code(StrEnum):
    QUOTA_EXCEEDED = "QuotaExceeded"
    MAX_JOBS_REACHED = "MaxJobsReached"
    NEVER_FITS = "NeverFits"
    WINDOW_AHEAD = "WindowAhead"
    """There is room now, and not any more once a window has begun (`quotas.core.trees.windows`)."""


class Bound(StrEnum):
    """The limit that refused."""

    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Admitted:
    borrows: bool
    """Whether some node of the path would be above its min with this job."""


@dataclass(frozen=True, slots=True)
class Refused:
    code: Code
    path: str
    """The node whose limit refused: the first one from the leaf up."""
    resource: str
    asked: int
    used: int
    kept: int
    """The part of the limit that idle siblings keep back for themselves (lendlimit)."""
    limit: int
    bound: Bound
    entitled: bool
    """The path below ``path`` stays within its min: others borrow what is guaranteed to the job, so reclaim may help."""

    @property
    def message(self) -> str:
        limit = f"{self.path} has {self.bound.value} {format_amount(self.resource, self.limit)}"
        if self.code is Code.NEVER_FITS:
            less = f", of which {format_amount(self.resource, self.kept)} are kept back" if self.kept else ""
            return f"asks for {format_amount(self.resource, self.asked)} and can never have it: {limit}{less}"
        kept = f" and {format_amount(self.resource, self.kept)} kept back" if self.kept else ""
        used = format_amount(self.resource, self.used)
        return f"asks for {format_amount(self.resource, self.asked)}: {limit}, with {used} used{kept}"


@dataclass(frozen=True, slots=True)
class BeforeWindow(Refused):
    """The refusal of a job that may still run when a window begins, and would then use what the window promises."""

    window: str = ""
    """The node of the window."""
    begin: datetime | None = None
    end: datetime | None = None
    ends: datetime | None = None
    """When the job ends at the latest; None: not known."""

    @property
    def message(self) -> str:
        runs = f"may run until {self.ends:%F %T} UTC" if self.ends else "states no time by which it ends"
        limit = f"{self.path} has {self.bound.value} {format_amount(self.resource, self.limit)} then"
        used = format_amount(self.resource, self.used)
        return (
            f"asks for {format_amount(self.resource, self.asked)} and {runs}, but a window of {self.window} begins at"
            f" {self.begin:%F %T} UTC: {limit}, with {used} in use or promised to windows; the window ends at"
            f" {self.end:%F %T} UTC"
        )


Answer = Admitted | Refused
_BORROWS, _WITHIN_MIN = Admitted(borrows=True), Admitted(borrows=False)


@dataclass(frozen=True, slots=True)
class _Block:
    """The first broken limit: its level on the path from the leaf up, and the resource's column."""

    level: int
    column: int
    bound: Bound
    promised: bool
    """Whether the level below stays within its min."""
    kept: int = 0


def check_admission(ledger: Ledger, leaf: str, amounts: Amounts, *, preemptible: bool = True) -> Answer:
    """Whether a job with these amounts (`quotas.core.trees.amounts.of_job`) fits as things stand; charges nothing."""
    request, path_rows, limits = ledger.ask(amounts), ledger.path_rows[leaf], ledger.limits[leaf]
    used = ledger.held.used[path_rows].tolist()
    firm = used if preemptible else ledger.held.firm[path_rows].tolist()
    block = _find_block(ledger, leaf, request, used, None if preemptible else firm, ledger.held)
    if block is None:
        return _BORROWS if _first_broken(request, limits.floor, used) else _WITHIN_MIN
    never = _find_never(ledger, leaf, request, preemptible=preemptible)
    if never is not None:
        return never
    code = Code.MAX_JOBS_REACHED if ledger.resources[block.column] == MAX_JOBS else Code.QUOTA_EXCEEDED
    return _as_refusal(ledger, leaf, dict(request), block, code, firm if block.bound is Bound.MIN else used)


def find_never_fitting(ledger: Ledger, charge: Charge) -> Refused | None:
    """The refusal of a job that does not fit even where nothing runs; None for all others."""
    return _find_never(ledger, charge.leaf, ledger.ask(charge.amounts), preemptible=charge.preemptible)


def find_full_node(ledger: Ledger, charge: Charge) -> str | None:
    """The node that refuses the job as things stand, and nothing more of what `check_admission` says; None: it fits."""
    request, path_rows = ledger.ask(charge.amounts), ledger.path_rows[charge.leaf]
    used = ledger.held.used[path_rows].tolist()
    firm = None if charge.preemptible else ledger.held.firm[path_rows].tolist()
    block = _find_block(ledger, charge.leaf, request, used, firm, ledger.held)
    return None if block is None else ledger.tree.nodes[int(path_rows[block.level])].path


def max_admissible(ledger: Ledger, leaf: str, amounts: Amounts) -> int:
    """An upper bound of how many jobs with these amounts fit, whatever else is admitted meanwhile."""
    request, used = ledger.ask(amounts), ledger.held.used[ledger.path_rows[leaf]].tolist()
    steps = zip(ledger.limits[leaf].max, used, strict=True)
    room = min(((high[i] - has[i]) // amount for high, has in steps for i, amount in request), default=UNLIMITED)
    return max(room, 0)


def find_short(ledger: Ledger, request: Units, path_rows: Units) -> NDArray[np.bool_]:  # [level, resource]
    """The levels and resources where max has no room for ``request``; what idle siblings keep back counts as used."""
    return np.asarray(find_missing(ledger, request, path_rows) > 0)


def find_missing(ledger: Ledger, request: Units, path_rows: Units) -> Units:  # [level, resource]
    """How much room max lacks for ``request`` on each level; what idle siblings keep back counts as used."""
    lack = np.where(request > 0, request - (ledger.max[path_rows] - ledger.held.used[path_rows]), 0)
    if not ledger.lends_all:
        grows = growth(ledger, ledger.held, request, path_rows)
        lack = np.maximum(lack, np.where(grows > 0, grows - (ledger.max[path_rows] - ledger.held.claims[path_rows]), 0))
    return np.asarray(np.maximum(lack, 0))


def within_min(ledger: Ledger, request: Units, path_rows: Units) -> NDArray[np.bool_]:  # [level, resource]
    """The levels and resources where ``request`` stays within min; what idle children keep back counts as used."""
    grows = request if ledger.lends_all else growth(ledger, ledger.held, request, path_rows)
    within = np.asarray(grows <= ledger.min[path_rows] - ledger.held.claims[path_rows])
    return unstated.widen(ledger, within, request, path_rows)


def is_promised(ledger: Ledger, charge: Charge) -> bool:
    """Whether the job's leaf stays within min with it, in all resources of which any node below the root has a min."""
    row, request = int(ledger.path_rows[charge.leaf][0]), ledger.ask(charge.amounts)
    low, used = ledger.limits[charge.leaf].min[0], ledger.held.claims[row].tolist()
    over = [i for i, amount in request if ledger.promised[i] and amount > low[i] - used[i]]
    return not over or unstated.are_covered(ledger, row, over, [i for i, _ in request])


def borrows_gpus(ledger: Ledger, charge: Charge) -> bool:
    """Whether the job's leaf would be above its min of GPUs with it."""
    row = int(ledger.path_rows[charge.leaf][0])
    low, used = ledger.limits[charge.leaf].min[0], ledger.held.claims[row].tolist()
    counts = ledger.gpus & ~ledger.ignored
    return any(amount > low[i] - used[i] for i, amount in ledger.ask(charge.amounts) if counts[i])


def promised_below(ledger: Ledger, charge: Charge, no: Refused) -> bool:
    """Whether the job stays within some min on its path below the refusing node, in the resource that is short there."""
    asked = dict(ledger.ask(charge.amounts))
    deciding = ledger.deciding(ledger.column[no.resource], asked)
    if not deciding:
        return False
    below = ledger.path_rows[charge.leaf].tolist().index(ledger.row[no.path])
    return all(
        _is_promised_below(ledger, charge.leaf, each, asked.get(each, 0), no.path) for each in deciding
    ) or _is_covered(ledger, charge.leaf, asked, deciding, slice(below))


def _is_covered(ledger: Ledger, leaf: str, request: dict[int, int], columns: list[int], levels: slice) -> bool:
    """Whether the job is within min in each of the columns on some of these levels, where they are not stated there."""
    path_rows = ledger.path_rows[leaf]
    if not ledger.unstated[path_rows[levels]][:, columns].any():
        return False
    asked = ledger.vector({ledger.resources[column]: amount for column, amount in request.items()})
    return bool(within_min(ledger, asked, path_rows)[levels, columns].any(axis=0).all())


def _is_promised_below(ledger: Ledger, leaf: str, column: int, grows: int, path: str) -> bool:
    limits, claims = ledger.limits[leaf], ledger.held.claims[ledger.path_rows[leaf], column].tolist()
    for row, low, reserved, now in zip(ledger.path_rows[leaf].tolist(), limits.min, limits.kept, claims, strict=True):
        if row == ledger.row[path]:
            break
        if grows <= low[column] - now:
            return True
        grows = max(now + grows, reserved[column]) - max(now, reserved[column])
    return False


def comes_before(ledger: Ledger, one: Charge, other: Charge) -> bool:
    """Whether ``one`` is within min just below their lowest common ancestor, and ``other`` would borrow there."""
    other_request = ledger.vector(other.amounts)
    claims = ledger.promised & (ledger.vector(one.amounts) > 0) & (other_request > 0)
    return is_within_beside(ledger, one, other) and not _within_apart(ledger, other, one)[claims].all()


def is_within_beside(ledger: Ledger, one: Charge, other: Charge) -> bool:
    """Whether ``one`` is within min just below their lowest common ancestor; False for two jobs of one leaf."""
    if one.leaf == other.leaf:
        return False
    claims = ledger.promised & (ledger.vector(one.amounts) > 0)
    return bool(_within_apart(ledger, one, other)[claims].all())


def _within_apart(ledger: Ledger, one: Charge, other: Charge) -> NDArray[np.bool_]:  # [resource]
    """The resources in which ``one`` is within min at the node of its path just below their lowest common ancestor."""
    path_rows, others = ledger.path_rows[one.leaf], set(ledger.path_rows[other.leaf].tolist())
    level = next(level for level, row in enumerate(path_rows.tolist()) if row in others)
    return np.asarray(within_min(ledger, ledger.vector(one.amounts), path_rows)[level - 1])


def growth(ledger: Ledger, held: Held, request: Units, path_rows: Units) -> Units:  # [level, resource]
    """The additional claim on each level: less than what is asked where the level below had kept some back already."""
    grows = np.empty((len(path_rows), len(request)), dtype=np.int64)
    for level, row in enumerate(path_rows.tolist()):
        grows[level] = request
        claims = held.claims[row]
        request = ledger.counted(claims + request, row) - ledger.counted(claims, row)
    return grows


def _find_never(ledger: Ledger, leaf: str, request: Ask, *, preemptible: bool) -> Refused | None:
    idle = ledger.limits[leaf].idle
    never = _find_block(ledger, leaf, request, idle, None if preemptible else idle, ledger.idle)
    return None if never is None else _as_refusal(ledger, leaf, dict(request), never, Code.NEVER_FITS, idle)


def _find_block(
    ledger: Ledger, leaf: str, request: Ask, used: list[list[int]], firm: list[list[int]] | None, held: Held
) -> _Block | None:
    """The first limit on the path that the job would break. ``firm``: use of non-preemptible jobs, for one that is such a
    job.
    """
    limits = ledger.limits[leaf]
    if firm is not None and (over := _first_broken(request, limits.floor, firm)):
        return _Block(*over, Bound.MIN, promised=False)
    if not ledger.lends_all:
        return _find_block_with_kept(ledger, leaf, request, used, held)
    if (over := _first_broken(request, limits.max, used)) is None:
        return None
    level, column = over
    asked, low, has = dict(request), limits.min[level - 1], used[level - 1]
    deciding = ledger.deciding(column, asked)
    promised = level > 0 and bool(deciding) and all(asked[each] <= low[each] - has[each] for each in deciding)
    return _Block(level, column, Bound.MAX, promised=promised)


def _first_broken(request: Ask, limits: list[list[int]], used: list[list[int]]) -> tuple[int, int] | None:
    """(level, column) of the first limit that is broken."""
    for level, (most, has) in enumerate(zip(limits, used, strict=True)):
        for column, amount in request:
            if amount > most[column] - has[column]:
                return level, column
    return None


def _find_block_with_kept(ledger: Ledger, leaf: str, request: Ask, used: list[list[int]], held: Held) -> _Block | None:
    """`_find_block` where idle siblings keep capacity back: computes `growth` in plain numbers, faster for one job."""
    limits, claims = ledger.limits[leaf], held.claims[ledger.path_rows[leaf]].tolist()
    grows, within = dict(request), dict.fromkeys(ledger.column.values(), False)
    for level, (low, high, reserved) in enumerate(zip(limits.min, limits.max, limits.kept, strict=True)):
        has, claimed = used[level], claims[level]
        below = dict(within) if ledger.has_flavors else within
        for column, amount in request:
            grow, now = grows[column], claimed[column]
            if amount > high[column] - has[column] or (0 < grow > high[column] - now):
                hidden = max(now + grow - amount - has[column], 0)
                deciding = ledger.deciding(column, grows)
                promised = bool(deciding) and all(below[each] for each in deciding)
                return _Block(level, column, Bound.MAX, promised, hidden)
            within[column] = grow <= low[column] - now
            grows[column] = max(now + grow, reserved[column]) - max(now, reserved[column])
    return None


def _as_refusal(
    ledger: Ledger, leaf: str, request: dict[int, int], block: _Block, code: Code, used: list[list[int]]
) -> Refused:
    path_rows, limits, column = ledger.path_rows[leaf], ledger.limits[leaf], block.column
    most = limits.max if block.bound is Bound.MAX else limits.min
    promised, deciding = block.promised, ledger.deciding(column, request)
    if not promised and block.bound is Bound.MAX and code is not Code.NEVER_FITS and block.level and deciding:
        promised = _is_covered(ledger, leaf, request, deciding, slice(block.level - 1, block.level))
    return Refused(
        code=code,
        path=ledger.tree.nodes[int(path_rows[block.level])].path,
        resource=ledger.resources[column],
        asked=min(request[column], UNLIMITED),
        used=used[block.level][column],
        kept=block.kept,
        limit=most[block.level][column],
        bound=block.bound,
        entitled=code is not Code.NEVER_FITS and promised,
    )
