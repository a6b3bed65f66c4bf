"""Which waiting gangs get a new reason in a plan, and what it says. A reason that did not change is not reported again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from jobs.core import reasons
from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.inadmissible import budget_spent
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Plan, Waits
from jobs.core.reasons import Code, QuotaVerdict, Reason
from jobs.core.scheduling.refusal_index import RefusalIndex
from jobs.core.scheduling.waiting import Waiting
from quotas.core.queues.admission import BeforeWindow
from quotas.core.queues.fair_share import Behind

T = TypeVar("T")
_PATIENCE = timedelta(seconds=5)
_REPORTED_PER_S = 100
"""Changed amounts are reported for so many jobs a second, and for one job every 5 s at most."""


class AttemptForClass(Protocol):
    def __call__(self, step: str, group: EquivalenceClass, action: Callable[[], T]) -> tuple[T] | None:
        """What the action returns; None: it raised, and the members are left out of the plan."""


class ReasonReporter:
    def __init__(
        self, waiting: Waiting, refusals: RefusalIndex, places: PlacementCache, attempt: AttemptForClass
    ) -> None:
        self._waiting, self._refusals, self._places, self._attempt = waiting, refusals, places, attempt
        self.inadmissible: dict[int, Reason] = {}
        """Gangs that are not even considered, until that is reported."""

    def report(self, plan: Plan, now: datetime) -> None:
        gangs, classes = self._waiting.gangs, self._waiting.classes
        plan.waits += [Waits(gangs[job], reason) for job, reason in self.inadmissible.items()]
        self.inadmissible.clear()
        leaves = list(self._refusals.stale_positions)
        self._refusals.stale_positions.clear()
        for leaf in leaves:
            self._report_positions(leaf, plan, now)
        patience = max(_PATIENCE, timedelta(seconds=len(gangs) / _REPORTED_PER_S))
        for group in classes.pending_reasons(now, patience):
            if not group.members or not group.refused or self._waiting.blocks(group.leaf):
                continue
            for reason in self._attempt("explain", group, partial(self._reason, group, now)) or ():
                plan.waits += [Waits(gangs[job], reason) for job in group.members_to_report(reason, now, patience)]
            if group.stale:
                classes.stale[group] = None

    def _report_positions(self, leaf: str, plan: Plan, now: datetime) -> None:
        """In a queue with policy Block: the reason of the first gang, and of the others how far behind it they are."""
        gangs, jobs = self._waiting.gangs, [job for _, job in self._waiting.classes.in_order(leaf)]
        if not jobs or not self._waiting.class_of(jobs[0]).refused:
            return
        first, *others = jobs
        blocker, group = gangs[first], self._waiting.class_of(first)
        for reason in self._attempt("explain", group, partial(self._reason, group, now)) or ():
            plan.waits.append(Waits(blocker, reason))
        for position, job in enumerate(others, start=2):
            if (behind := self._waiting.classes.by_job.get(job)) is None:
                continue  # left out with its class
            verdict = admission_pass.verdict_of(Behind(leaf, position, blocker.name, gangs[job].name))
            for clusters in self._attempt("explain", behind, partial(self._clusters, behind, now)) or ():
                plan.waits.append(Waits(gangs[job], Reason(verdict.code, verdict.message, clusters, verdict)))

    def _reason(self, group: EquivalenceClass, now: datetime) -> Reason:
        clusters = self._clusters(group, now)
        group.preemption_may_help = any(verdict.is_crowded for verdict in clusters)
        reason = self._reason_of(group, clusters)
        if group.option is None:
            return reason
        others = {at: self._message_at(group, at, now) for at in group.answers if at != group.at}
        messages = {group.at: reason.message, **others}
        listed = "; ".join(f"{group.options[at].name}: {messages[at]}" for at in sorted(messages))
        return replace(reason, message=listed)

    def _message_at(self, group: EquivalenceClass, at: int, now: datetime) -> str:
        """Why another flavor than the one the class waits for is not possible."""
        refusal, waits_for = group.answers[at], group.at
        if refusal is not None:
            return refusal.message
        try:
            group.at = at
            clusters = self._clusters(group, now)
        finally:
            group.at = waits_for
        group.preemption_may_help |= any(verdict.is_crowded for verdict in clusters)
        return reasons.no_cluster_fits(sorted(clusters, key=lambda verdict: verdict.cluster)).message

    def _reason_of(self, group: EquivalenceClass, clusters: tuple[reasons.Verdict, ...]) -> Reason:
        if group.refusal is not None:
            quota = None if isinstance(group.refusal, BeforeWindow) else self._waiting.quota
            if quota is not None and (spent := quota.modest.get(group.refusal.path)) is not None:
                return budget_spent(group.refusal.path, spent, clusters)
            verdict = admission_pass.verdict_of(group.refusal)
            return Reason(verdict.code, verdict.message, clusters, verdict)
        reason = reasons.no_cluster_fits(sorted(clusters, key=lambda verdict: verdict.cluster))
        admits = QuotaVerdict(Code.FITS, group.leaf, f"{group.leaf} has room for it") if group.leaf else None
        return replace(reason, quota=admits)

    def _clusters(self, group: EquivalenceClass, now: datetime) -> tuple[reasons.Verdict, ...]:
        return self._places.verdicts(group.shape, group.sample, group.only, now)
