"""Which waiting gangs get a new reason in a plan, and what it says. A reason that did not change is not reported again."""

from dataclasses import replace
from datetime import datetime, timedelta

from jobs.core import reasons
from jobs.core.admission import admission_pass
from jobs.core.admission.equivalence import EquivalenceClass
from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.admission.plans import Plan, Waits
from jobs.core.reasons import Code, QuotaVerdict, Reason
from jobs.core.scheduling.refusal_index import RefusalIndex
from jobs.core.scheduling.waiting import Waiting
from quotas.core.fair_share import Behind

_PATIENCE = timedelta(seconds=5)
_REPORTED_PER_S = 100
"""Changed amounts are reported for so many jobs a second, and for one job every 5 s at most."""


class ReasonReporter:
    def __init__(self, waiting: Waiting, refusals: RefusalIndex, places: PlacementCache) -> None:
        self._waiting, self._refusals, self._places = waiting, refusals, places
        self.inadmissible: dict[int, Reason] = {}
        """Gangs that are not even considered, until that is reported."""

    def report(self, plan: Plan, now: datetime) -> None:
        gangs, classes = self._waiting.gangs, self._waiting.classes
        plan.waits += [Waits(gangs[job], reason) for job, reason in self.inadmissible.items()]
        self.inadmissible.clear()
        for leaf in self._refusals.stale_positions:
            self._report_positions(leaf, plan, now)
        self._refusals.stale_positions.clear()
        patience = max(_PATIENCE, timedelta(seconds=len(gangs) / _REPORTED_PER_S))
        for group in classes.pending_reasons(now, patience):
            if not group.members or not group.refused or self._waiting.blocks(group.leaf):
                continue
            reason = self._reason(group, now)
            plan.waits += [Waits(gangs[job], reason) for job in group.members_to_report(reason, now, patience)]
            if group.stale:
                classes.stale[group] = None

    def _report_positions(self, leaf: str, plan: Plan, now: datetime) -> None:
        """In a queue with policy Block: the reason of the first gang, and of the others how far behind it they are."""
        gangs, jobs = self._waiting.gangs, [job for _, job in self._waiting.classes.in_order(leaf)]
        if not jobs or not self._waiting.class_of(jobs[0]).refused:
            return
        first, *others = jobs
        plan.waits.append(Waits(gangs[first], self._reason(self._waiting.class_of(first), now)))
        for position, job in enumerate(others, start=2):
            verdict = admission_pass.verdict_of(Behind(leaf, position, gangs[first].name))
            clusters = self._clusters(self._waiting.class_of(job), now)
            plan.waits.append(Waits(gangs[job], Reason(verdict.code, verdict.message, clusters, verdict)))

    def _reason(self, group: EquivalenceClass, now: datetime) -> Reason:
        clusters = self._clusters(group, now)
        group.preemption_may_help = any(verdict.is_crowded for verdict in clusters)
        if group.refusal is not None:
            verdict = admission_pass.verdict_of(group.refusal)
            return Reason(verdict.code, verdict.message, clusters, verdict)
        reason = reasons.no_cluster_fits(sorted(clusters, key=lambda verdict: verdict.cluster))
        admits = QuotaVerdict(Code.FITS, group.leaf, f"{group.leaf} has room for it") if group.leaf else None
        return replace(reason, quota=admits)

    def _clusters(self, group: EquivalenceClass, now: datetime) -> tuple[reasons.Verdict, ...]:
        return self._places.verdicts(group.key[1], group.sample, group.only, now)
