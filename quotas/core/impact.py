"""The impact of another quota tree on the current jobs: which start, wait, are reclaimed, or would be left without a leaf.

Both trees are simulated with the same jobs and the same engine and compared: what would happen under the old tree anyway is
no effect of the change. A running job's place in its queue is taken to be its start time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from quotas.core.admission import Bound
from quotas.core.amounts import format_amount
from quotas.core.candidates import Running
from quotas.core.ledger import Ledger
from quotas.core.order import Unit
from quotas.core.simulation import Job, Places, Settled, place_anywhere, simulate_to_fixpoint
from quotas.core.tree import Tree


@dataclass(frozen=True, slots=True)
class Side:
    """A tree with the jobs of its leaves. Jobs without a leaf are left out: no quota limits them."""

    tree: Tree
    running: Sequence[Running] = ()
    waiting: Sequence[Unit] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One job and what becomes of it."""

    job: str
    leaf: str
    code: str
    message: str
    lost_gpu_hours: float = 0.0
    """Of work that it has not saved, when it is stopped."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A node with more running than the new tree allows: nothing is stopped, and no job is admitted until enough have ended."""

    path: str
    resource: str
    used: int
    limit: int
    bound: Bound
    jobs: tuple[str, ...]
    """The jobs that would have to end until it is within its limit: the cheapest to stop first."""

    @property
    def message(self) -> str:
        limit = f"{self.bound.value} {format_amount(self.resource, self.limit)}"
        firm = " by jobs that may not be preempted" if self.bound is Bound.MIN else ""
        return f"{self.path} has {limit}, with {format_amount(self.resource, self.used)} used{firm}"


@dataclass(frozen=True, slots=True)
class Effect:
    starts: tuple[Line, ...] = ()
    """Run then, and would not without the change."""
    waits: tuple[Line, ...] = ()
    """Wait then, and would start without the change."""
    reclaimed: tuple[Line, ...] = ()
    """Run now, and are stopped for others because of the change."""
    unbound: tuple[str, ...] = ()
    """Had a leaf and have none any more."""
    excess: tuple[Excess, ...] = ()

    @property
    def strands(self) -> bool:
        return bool(self.unbound or self.excess)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "excess": [{**asdict(each), "message": each.message} for each in self.excess]}


def compute_effect(before: Side | None, after: Side, now: datetime, places: Places = place_anywhere) -> Effect:
    """The effect of the change. ``before`` is None where there was no quota: then every job that waits afterwards is an
    effect.
    """
    new = _simulate_side(after, now, places)
    old = _simulate_side(before, now, places) if before else _Outcome(_all_waiting(after), {}, {})
    return Effect(
        starts=tuple(_started_line(new, key) for key in new.starts if key not in old.starts),
        waits=tuple(new.waits[key] for key in old.starts if key in new.waits),
        reclaimed=tuple(line for key, line in new.stopped.items() if key not in old.stopped),
        unbound=tuple(sorted(_job_keys(before) - _job_keys(after))) if before else (),
        excess=tuple(_find_excess(after)),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    starts: Mapping[str, Unit]
    waits: Mapping[str, Line]
    stopped: Mapping[str, Line]


def _simulate_side(side: Side, now: datetime, places: Places) -> _Outcome:
    jobs = [_as_running_job(each) for each in side.running] + [Job(unit) for unit in side.waiting]
    made = simulate_to_fixpoint(
        Ledger.from_charges(side.tree, (each.charge for each in side.running)), jobs, now, places
    )
    waiting = {unit.id: unit for unit in side.waiting}
    return _Outcome(
        {key: waiting[key] for key in made.running if key in waiting},
        {unit.id: Line(unit.id, unit.leaf, answer.code, answer.message) for unit, answer in made.waits},
        _reclaimed_lines(side, made),
    )


def _as_running_job(job: Running) -> Job:
    unit = Unit(job.key, job.key, job.charge, job.priority, job.started_at)
    return Job(unit, job.started_at, job.elastic, job.checkpointed, job.lost_s)


def _reclaimed_lines(side: Side, made: Settled) -> dict[str, Line]:
    ran = {each.key for each in side.running}
    return {
        victim.key: Line(
            victim.key,
            victim.leaf,
            victim.cause,
            f"{victim.message}: makes room for {plan.preemptor}{_loses(victim.lost_gpu_hours)}",
            round(victim.lost_gpu_hours, 2),
        )
        for plan in made.reclaims
        for victim in plan.victims
        if victim.key in ran and victim.key not in made.running
    }


def _loses(gpu_hours: float) -> str:
    return f", and {gpu_hours:.1f} GPU-hours of its work are lost" if gpu_hours >= 0.05 else ""


def _all_waiting(side: Side) -> dict[str, Unit]:
    return {unit.id: unit for unit in side.waiting}


def _started_line(made: _Outcome, key: str) -> Line:
    return Line(key, made.starts[key].leaf, "Starts", f"starts in {made.starts[key].leaf}")


def _job_keys(side: Side) -> set[str]:
    return {each.key for each in side.running} | {each.id for each in side.waiting}


def _find_excess(side: Side) -> Iterator[Excess]:
    ledger = Ledger.from_charges(side.tree, (each.charge for each in side.running))
    jobs = sorted(side.running, key=lambda job: job.cheap_first)
    firm = [job for job in jobs if not job.charge.preemptible]
    for bound, used, limits, among in (
        (Bound.MAX, ledger.held.used, ledger.max, jobs),
        (Bound.MIN, ledger.held.firm, np.where(ledger.guarded, ledger.min, ledger.held.firm), firm),
    ):
        for row, column in np.argwhere(used > limits).tolist():
            path, resource = side.tree.nodes[row].path, ledger.resources[column]
            has, limit = int(used[row, column]), int(limits[row, column])
            inside = [job for job in among if job.leaf == path or job.leaf.startswith(f"{path}/")]
            yield Excess(path, resource, has, limit, bound, tuple(_first_to_end(inside, resource, has - limit)))


def _first_to_end(jobs: Iterable[Running], resource: str, too_much: int) -> Iterator[str]:
    for job in jobs:
        amount = job.charge.amounts.get(resource, 0)
        if too_much > 0 and amount:
            too_much -= amount
            yield job.key
