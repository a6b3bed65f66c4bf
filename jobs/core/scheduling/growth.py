"""Growth of running gangs with what a cycle left: on their own clusters, beside what is set aside, all of it or nothing.

Pure. A growth is planned as a gang of the pods that it adds, which is charged to its leaf like one, but is no job more.
What was asked for comes first. Then elastic gangs get what is free (`Spare`), or parts of what they ask for, unless a waiting
gang or growth could use it, or it is part of the min of another queue: what they get so is not taken back before something new
happens.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from jobs.core import reasons
from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.inadmissible import find_inadmissible_reason
from jobs.core.admission.nominations import Nominations
from jobs.core.gang.types import CapacityHold, Gang
from jobs.core.reasons import QuotaVerdict, Reason, Verdict
from jobs.core.resizing import holds
from jobs.core.resizing.bounds import Sizes
from jobs.core.scheduling.scheduler import Scheduler
from quotas.core.accounts.ledger import Charge
from quotas.core.accounts.spare import leaves_mins_alone
from quotas.core.queues import admission
from quotas.core.trees import amounts


@dataclass(frozen=True, slots=True)
class Growth:
    """A running job that is to have these sizes."""

    gang: Gang
    """The pods to add."""
    cluster: str
    sizes: Sizes
    total: reasons.Amounts
    """What the whole job asks once it has grown."""
    hold_key: tuple[str, int]
    unready: Reason | None = None
    """Why it is not looked at yet, although there may be room."""
    parts: tuple["Growth", ...] = ()
    """Smaller ones, the largest first: the first that fits is taken where it does not fit itself."""
    part_of: Sizes | None = None
    """The sizes that were asked for, which it is a part of; None: it is all that was asked for."""
    restarts_anyway: bool = False
    """A part for which the job need not be restarted by itself: it may be taken although others could use it."""
    returns_lost: bool = False
    """Of an elastic job, for what a reclaim took from it: by itself such a job takes nothing of the min of another queue."""
    holds_up: bool = True
    """What it is short of is kept from elastic jobs, which would take it in parts."""

    @property
    def added(self) -> Charge:
        return Charge(self.gang.leaf, self.gang.total, self.gang.preemptible)

    @property
    def charge(self) -> Charge:
        """What its leaf is charged once it has grown."""
        return Charge(self.gang.leaf, amounts.of_job(self.total), self.gang.preemptible)


@dataclass(frozen=True, slots=True)
class Spare:
    """A running elastic job, which gets what is free."""

    options: tuple[Growth, ...]
    """The sizes to try, the largest first."""


Unmet = Sequence[tuple[Growth, Reason]]
"""Growths that were asked for and are not possible as a whole, and why not."""


@dataclass(frozen=True, slots=True)
class Grown:
    growth: Growth
    hold: CapacityHold
    """What is held for the job from now on, with what its attempt held before."""


@dataclass(slots=True)
class GrowthPlan:
    grown: list[Grown] = field(default_factory=list)
    waits: list[tuple[Growth, Reason]] = field(default_factory=list)
    tree_version: int = 0


def plan_growth(
    scheduler: Scheduler, growths: Iterable[Growth], now: datetime, spares: Iterable[Spare] = ()
) -> GrowthPlan:
    """Which gangs grow now; they count as charged and held from now on. The most urgent comes first, then the oldest."""
    plan = GrowthPlan(tree_version=scheduler.quota.version if scheduler.quota else 0)
    unmet: list[tuple[Growth, Reason]] = []
    with scheduler.beside_nominees(now) as nominations:
        for growth in sorted(
            growths, key=lambda growth: (-growth.gang.priority, growth.gang.queued_at, growth.gang.name)
        ):
            decide = partial(_decide_in_parts, scheduler, growth, unmet, nominations, now)
            for decision, short in scheduler.attempt("grow", 0, decide) or ():
                if short is not None and growth.holds_up:
                    unmet.append((growth, short))
                if decision is not None:
                    _take(scheduler, decision, nominations)
                    plan.grown.append(decision)
                elif short is not None:
                    plan.waits.append((growth, short))
        for spare in spares:
            outcome = scheduler.attempt("grow", 0, partial(_use_spare, scheduler, spare, unmet, nominations, now))
            plan.grown += [grown for grown in outcome or () if grown is not None]
    for grown in plan.grown:  # the holds above may be undone with what was set aside
        scheduler.places.hold(grown.hold)
    return plan


def _use_spare(
    scheduler: Scheduler, spare: Spare, unmet: Unmet, nominations: Nominations, now: datetime
) -> Grown | None:
    """The largest of its options that is free and that no other job has a use or a right for."""
    decision = _largest_of(scheduler, spare.options, unmet, nominations, now)
    if decision is not None:
        _take(scheduler, decision, nominations)
    return decision


def _largest_of(
    scheduler: Scheduler, options: Sequence[Growth], unmet: Unmet, nominations: Nominations, now: datetime
) -> Grown | None:
    """The first of a job's options, in their order, that is free and that no other job has a use or a right for."""
    if not options or any(_contends(growth, reason, options[0], scheduler) for growth, reason in unmet):
        return None
    if _is_wanted(scheduler, options[0]):
        return None
    for growth in options:
        if _takes_from_mins(scheduler, growth):
            continue
        if isinstance(decision := _decide(scheduler, growth, nominations, now), Grown):
            return decision
    return None


def _contends(growth: Growth, reason: Reason, option: Growth, scheduler: Scheduler) -> bool:
    """Whether a growth that was asked for could use what the elastic job would get, now or with what becomes free beside it.

    Not where it is short of other resources alone: it may wait for those for ever.
    """
    if reason.code is reasons.Code.NEVER_FITS or not _may_use(option, _short_of(reason), growth):
        return False
    if reason.quota is None or not reason.quota.path:
        return option.cluster == growth.cluster
    return reason.quota.path in _paths_to_root(scheduler, option.gang.leaf)


def _short_of(reason: Reason) -> set[str]:
    """The resources of which there is too little for the growth; empty: that is not known."""
    if reason.quota is not None:
        return {str(reason.quota.facts["resource"])} if "resource" in reason.quota.facts else set()
    return {resource for verdict in reason.clusters for resource in verdict.short}


def _may_use(option: Growth, short: Set[str], growth: Growth) -> bool:
    """Whether the option may take something of what the growth is short of: also of what no pod states, as places for pods."""
    if not short or not short <= growth.gang.total.keys():
        return True
    return any(option.gang.total.get(resource, 0) for resource in short)


def _takes_from_mins(scheduler: Scheduler, growth: Growth) -> bool:
    if scheduler.quota is None or not growth.gang.asks_quota:
        return False
    return not leaves_mins_alone(scheduler.quota.ledger, growth.added)


def _is_wanted(scheduler: Scheduler, option: Growth) -> bool:
    """Whether a waiting gang could use what the job would get, now or with what becomes free beside it.

    Not one that can never fit on that cluster, nor one that waits for a limit of its own, which the job has no part in.
    """
    path = _paths_to_root(scheduler, option.gang.leaf)
    groups = {id(group): group for group in map(scheduler.class_of, scheduler.gangs) if group is not None}
    return any(_could_use(group, path, option.cluster) for group in groups.values())


def _paths_to_root(scheduler: Scheduler, leaf: str) -> set[str]:
    quota = scheduler.quota
    return {node.path for node in quota.ledger.tree.to_root(leaf)} if quota and leaf else set()


def _could_use(group: EquivalenceClass, path: Set[str], cluster: str) -> bool:
    if group.refusal is not None:
        return group.refusal.code is not admission.Code.NEVER_FITS and group.refusal.path in path
    if not group.infeasible:
        return True
    # The reason is that of one flavor, where there are several.
    verdicts = group.reason.clusters if group.reason is not None and not group.options else ()
    here = next((verdict for verdict in verdicts if verdict.cluster == cluster), None)
    if here is None:
        return group.preemption_may_help
    return here.is_crowded and not (here.detail is not None and here.detail.never)


def _decide_in_parts(
    scheduler: Scheduler, growth: Growth, unmet: Unmet, nominations: Nominations, now: datetime
) -> tuple[Grown | None, Reason | None]:
    """The growth or a part of it, and why it is not possible as a whole. ``unmet``: those that come before it."""
    whole = _decide(scheduler, growth, nominations, now)
    if isinstance(whole, Grown):
        return whole, None
    for part in growth.parts:
        if part.restarts_anyway and isinstance(decision := _decide(scheduler, part, nominations, now), Grown):
            return decision, whole
    others = [part for part in growth.parts if not part.restarts_anyway]
    return _largest_of(scheduler, others, unmet, nominations, now), whole


def _decide(scheduler: Scheduler, growth: Growth, nominations: Nominations, now: datetime) -> Grown | Reason:
    gang = growth.gang
    if (reason := growth.unready or find_inadmissible_reason(gang, scheduler.quota)) is not None:
        return reason
    if growth.returns_lost and _takes_from_mins(scheduler, growth):
        message = f"what is free is part of the min of another queue than {gang.leaf}"
        quota = QuotaVerdict(reasons.Code.QUOTA_EXCEEDED, gang.leaf, message)
        return Reason(quota.code, message, (), quota)
    if gang.asks_quota and scheduler.quota is not None:
        unit = replace(admission_pass.unit_of(gang), charge=growth.added)
        refused = admission_pass.check_quota(scheduler.quota.ledger, unit) or nominations.check(unit, gang)
        if refused is not None:
            quota = admission_pass.verdict_of(refused)
            return Reason(quota.code, quota.message, (), quota)
    place = scheduler.places.find_on(growth.cluster, gang, _clusters_of(scheduler, gang.leaf), now)
    if isinstance(place, Verdict):
        return Reason(place.code, f"{place.cluster} {place.message}", (place,))
    before = scheduler.places.holds.get(growth.hold_key)
    return Grown(growth, _beside(before, place.hold(growth.hold_key)))


def _take(scheduler: Scheduler, grown: Grown, nominations: Nominations) -> None:
    gang = grown.growth.gang
    nominations.charged(grown.growth.added)
    if gang.asks_quota and scheduler.quota is not None:
        scheduler.quota.ledger.charge(grown.growth.added)
        scheduler.charges[gang.job_id] = grown.growth.charge
    scheduler.places.hold(grown.hold)


def _beside(before: CapacityHold | None, added: CapacityHold) -> CapacityHold:
    """The hold of the whole job, which may hold something still for pods that are not bound yet."""
    if before is None:
        return added
    nodes = (*before.nodes, *added.nodes) if before.nodes and added.nodes else ()
    return replace(added, total=holds.plus(before.total, added.total), nodes=nodes)


def _clusters_of(scheduler: Scheduler, leaf: str) -> tuple[str, ...]:
    """The clusters that the queue may use; empty: all."""
    node = scheduler.quota.ledger.tree.by_path.get(leaf) if scheduler.quota else None
    return node.attributes.cluster_affinity if node else ()
