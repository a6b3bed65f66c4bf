"""The impact of another quota tree on the current jobs: which start, wait, are reclaimed, or would be left without a leaf.

Both trees are simulated with the same jobs and the same engine and compared: what would happen under the old tree anyway is
no effect of the change. A running job's place in its queue is taken to be its start time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from quotas.core.accounts.budget_accounts import Account, counts, without_borrowing
from quotas.core.accounts.ledger import Ledger
from quotas.core.queues.admission import Bound, Refused
from quotas.core.queues.fair_share import Behind
from quotas.core.queues.job_names import HIDDEN, namespace_of
from quotas.core.queues.order import Unit
from quotas.core.reclaiming import excess
from quotas.core.reclaiming.candidates import Running
from quotas.core.reclaiming.excess import Cause, Overrun, Surplus
from quotas.core.reclaiming.victims import Reclaim
from quotas.core.simulation import Job, NoPlace, Places, Settled, place_anywhere, simulate_to_fixpoint
from quotas.core.trees.budgets import WhenSpent
from quotas.core.trees.tree import ExcessPolicy, Tree

BUDGET_SPENT = "BudgetSpent"
_CLOSING = (WhenSpent.WAIT, WhenSpent.STOP)


@dataclass(frozen=True, slots=True)
class Side:
    """A tree with the jobs of its leaves. Jobs without a leaf are left out: no quota limits them."""

    tree: Tree
    running: Sequence[Running] = ()
    waiting: Sequence[Unit] = ()
    spent: Sequence[Account] = ()
    """The budgets of the tree that are used up."""

    def spent_for(self, leaf: str, *policies: WhenSpent) -> Account | None:
        """The used-up budget of the leaf or a node above that says one of these."""
        return next(
            (
                each
                for each in self.spent
                if each.budget.when_spent in policies and f"{leaf}/".startswith(f"{each.path}/")
            ),
            None,
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One job and what becomes of it."""

    job: str
    leaf: str
    code: str
    message: str
    lost_gpu_hours: float = 0.0
    """Of work that it has not saved, when it is stopped."""
    named: tuple[str, ...] = ()
    """Other jobs that the message names."""
    not_before: datetime | None = None
    """When it may first be stopped, by the min-runtime of its queue; None: now."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A node with more running than the new tree allows; what follows is stated by its policy."""

    path: str
    resource: str
    used: int
    limit: int
    bound: Bound
    policy: ExcessPolicy
    jobs: tuple[str, ...]
    """The jobs that would have to end until it is within its limit, or that are evicted: the cheapest to stop."""
    lost_gpu_hours: float
    """Of work that these jobs have not saved, when they are evicted; 0 where they are not."""
    message: str


@dataclass(frozen=True, slots=True)
class Effect:
    starts: tuple[Line, ...] = ()
    """Run then, and would not without the change."""
    waits: tuple[Line, ...] = ()
    """Wait then, and would start without the change."""
    reclaimed: tuple[Line, ...] = ()
    """Run now, and are stopped because of the change: for others, or since they are above a limit that takes back."""
    unbound: tuple[str, ...] = ()
    """Had a leaf and have none any more."""
    excess: tuple[Excess, ...] = ()

    def shown_to(self, sees: Callable[[str], bool]) -> "Effect":
        """Without the names of jobs whose namespaces ``sees`` does not allow: they are empty, and in messages words."""

        def name(job: str) -> str:
            return job if sees(namespace_of(job)) else ""

        def line(each: Line) -> Line:
            message = each.message
            for job in each.named:
                message = message if name(job) else message.replace(job, HIDDEN)
            return replace(each, job=name(each.job), message=message, named=tuple(filter(name, each.named)))

        return Effect(
            tuple(map(line, self.starts)),
            tuple(map(line, self.waits)),
            tuple(map(line, self.reclaimed)),
            tuple(map(name, self.unbound)),
            tuple(replace(each, jobs=tuple(map(name, each.jobs))) for each in self.excess),
        )

    @property
    def strands(self) -> bool:
        return bool(self.unbound or self.excess)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compute_effect(before: Side | None, after: Side, now: datetime, places: Places = place_anywhere) -> Effect:
    """The effect of the change. ``before`` is None where there was no quota: then every job that waits afterwards is an
    effect.
    """
    new = _simulate_side(after, now, places)
    old = _simulate_side(before, now, places) if before else _Outcome(_all_waiting(after), {}, {})
    stopped = {**(_left_without_leaf(before, after) if before else {}), **new.stopped}
    return Effect(
        starts=tuple(_started_line(new, key) for key in new.starts if key not in old.starts),
        waits=tuple(new.waits[key] for key in old.starts if key in new.waits),
        reclaimed=tuple(line for key, line in stopped.items() if key not in old.stopped),
        unbound=tuple(sorted(_job_keys(before) - _job_keys(after))) if before else (),
        excess=tuple(_find_excess(after)),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    starts: Mapping[str, Unit]
    waits: Mapping[str, Line]
    stopped: Mapping[str, Line]


def _simulate_side(side: Side, now: datetime, places: Places) -> _Outcome:
    modest = [each.path for each in side.spent if each.budget.when_spent is WhenSpent.BORROW_NOTHING]
    stopped = {job.key: account for job in side.running if (account := side.spent_for(job.leaf, WhenSpent.STOP))}
    closed = {unit.id: account for unit in side.waiting if (account := side.spent_for(unit.leaf, *_CLOSING))}
    running = [job for job in side.running if job.key not in stopped]
    waiting = {unit.id: unit for unit in side.waiting if unit.id not in closed}
    ledger = Ledger.from_charges(without_borrowing(side.tree, modest), (job.charge for job in running))
    evicted = {surplus.job.key: surplus for surplus in excess.plan_evictions(ledger, running)}
    for surplus in evicted.values():
        ledger.release(surplus.job.charge)
    jobs = [Job(_unit_of(job)) if job.key in evicted else _as_running_job(job) for job in running]
    settled = simulate_to_fixpoint(ledger, [*jobs, *map(Job, waiting.values())], now, places)
    budgets = {each.path: each for each in side.spent}
    return _Outcome(
        {key: waiting[key] for key in settled.running if key in waiting},
        {unit.id: _waiting_line(unit, answer, budgets) for unit, answer in settled.waits}
        | {unit.id: _spent_line(unit, closed[unit.id]) for unit in side.waiting if unit.id in closed},
        {key: _evicted_line(surplus) for key, surplus in evicted.items()}
        | _reclaimed_lines(side, settled)
        | {
            job.key: _stopped_line(job, BUDGET_SPENT, stopped[job.key].message)
            for job in side.running
            if job.key in stopped
        },
    )


def _spent_line(unit: Unit, account: Account) -> Line:
    return Line(unit.id, unit.leaf, BUDGET_SPENT, account.message)


def _waiting_line(unit: Unit, answer: Refused | Behind | NoPlace, budgets: Mapping[str, Account]) -> Line:
    if isinstance(answer, Refused) and answer.bound is Bound.MAX and counts(answer.resource):
        account = budgets.get(answer.path)
        if account is not None and account.budget.when_spent is WhenSpent.BORROW_NOTHING:
            return _spent_line(unit, account)
    named = (answer.blocker,) if isinstance(answer, Behind) else ()
    return Line(unit.id, unit.leaf, answer.code, answer.message, named=named)


def _unit_of(job: Running) -> Unit:
    return Unit(job.key, job.key, job.charge, job.priority, job.started_at, choices=job.choices)


def _as_running_job(job: Running) -> Job:
    return Job(_unit_of(job), job.started_at, job.elastic, job.checkpointed, job.lost_s, job.protected_until)


def _reclaimed_lines(side: Side, settled: Settled) -> dict[str, Line]:
    ran = {each.key for each in side.running}
    return {
        victim.key: Line(
            victim.key,
            victim.leaf,
            victim.cause,
            f"{victim.message}: makes room for {plan.preemptor}{_loses(victim.lost_gpu_hours)}{_not_before(plan)}",
            round(victim.lost_gpu_hours, 2),
            (plan.preemptor,),
            plan.protected_until,
        )
        for plan in settled.reclaims
        for victim in plan.victims
        if victim.key in ran and victim.key not in settled.running
    }


def _loses(gpu_hours: float) -> str:
    return f", and {gpu_hours:.1f} GPU-hours of its work are lost" if gpu_hours >= 0.05 else ""


def _not_before(plan: Reclaim) -> str:
    until = plan.protected_until
    return f", not before {until:%Y-%m-%d %H:%M:%S} UTC, when its min-runtime is over" if until else ""


def _all_waiting(side: Side) -> dict[str, Unit]:
    return {unit.id: unit for unit in side.waiting}


def _started_line(outcome: _Outcome, key: str) -> Line:
    return Line(key, outcome.starts[key].leaf, "Starts", f"starts in {outcome.starts[key].leaf}")


def _job_keys(side: Side) -> set[str]:
    return {each.key for each in side.running} | {each.id for each in side.waiting}


def _evicted_line(surplus: Surplus) -> Line:
    job = surplus.job
    return _stopped_line(job, Cause.ABOVE_MAX, surplus.overrun.message)


def _left_without_leaf(before: Side, after: Side) -> dict[str, Line]:
    """The running jobs of removed leaves that the nearest node above takes back."""
    known = _job_keys(after)
    return {
        job.key: _stopped_line(job, Cause.WITHOUT_LEAF, f"{job.leaf} is not in the tree any more")
        for job in before.running
        if job.key not in known and after.tree.nearest(job.leaf).attributes.excess is ExcessPolicy.TAKE_BACK
    }


def _stopped_line(job: Running, cause: str, message: str) -> Line:
    lost = job.lost_gpu_hours
    return Line(job.key, job.leaf, cause, f"{message}: is evicted{_loses(lost)}", round(lost, 2))


def _find_excess(side: Side) -> Iterator[Excess]:
    ledger = Ledger.from_charges(side.tree, (job.charge for job in side.running))
    for overrun in excess.find_overruns(ledger):
        inside = [job for job in side.running if f"{job.leaf}/".startswith(f"{overrun.path}/")]
        jobs = _first_to_end(ledger, overrun, inside)
        yield Excess(
            overrun.path, overrun.resource, overrun.used, overrun.limit, overrun.bound, overrun.policy,
            tuple(job.key for job in jobs),
            round(sum(job.lost_gpu_hours for job in jobs), 2) if overrun.policy is ExcessPolicy.TAKE_BACK else 0.0,
            overrun.message,
        )  # fmt: skip


def _first_to_end(ledger: Ledger, overrun: Overrun, inside: Sequence[Running]) -> list[Running]:
    if overrun.bound is Bound.MAX:
        return [each.job for each in excess.plan_evictions(ledger, inside, [excess.cells_of(ledger, overrun)])]
    firm = (job for job in sorted(inside, key=lambda job: job.cheap_first) if not job.charge.preemptible)
    too_much, jobs = overrun.used - overrun.limit, []
    for job in firm:
        amount = job.charge.amounts.get(overrun.resource, 0)
        if too_much > 0 and amount:
            too_much -= amount
            jobs.append(job)
    return jobs
