"""The running gangs that may be preempted, and the cost of stopping each: kept between cycles, updated gang by gang.

Read again are gangs that changed, gangs with pods on a node that changed and, each time, gangs whose hold is still open while
some of their pods are bound: those pods appear one by one. No eviction is ordered from this cache alone: the targets it
suggests are chosen again from fresh rows (`jobs.services.scheduling.loop`).
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping

from fleet.models import Hold, Pod
from jobs import snapshot
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import AdmittedGang
from jobs.core.preemption.cost import Loss
from jobs.services.scheduling.demand import demand_provider


class PreemptionCandidates:
    """Loads nothing before the first `read`."""

    def __init__(self) -> None:
        self.costs: dict[int, Loss] = {}
        self._by_job: dict[int, AdmittedGang] = {}
        self._on: dict[tuple[str, str], set[int]] = defaultdict(set)
        """(cluster, node) -> jobs with pods there."""
        self._stale: set[int] | None = None
        """Jobs to read again; None: all."""
        self._held: set[int] = set()
        """Jobs with an open hold at the last `read`."""

    def changed(self, jobs: Iterable[int]) -> None:
        if self._stale is not None:
            self._stale.update(jobs)

    def node_changed(self, cluster: str, name: str) -> None:
        if self._stale is not None:
            self._stale |= self._on.get((cluster, name), set())

    def load(self, quota: Quota, held: Collection[Hashable]) -> Mapping[int, AdmittedGang]:
        """All candidates by job, as the rows are now; ``held`` are the keys of all open holds."""
        rows = snapshot.running_jobs()
        if self._stale is not None:
            self._stale |= self._binding_pods(held)
            self._drop(self._stale)
            rows = rows.filter(pk__in=self._stale)
        if self._stale is None or self._stale:
            runners = snapshot.load_runners(rows, quota)
            self._keep(runners)
            self.costs |= demand_provider.losses_of(rows) if runners else {}
            self._stale = set()
        self._held = {runner.job_id for runner in self._by_job.values() if runner.hold_key in held}
        return self._by_job

    def _binding_pods(self, held: Collection[Hashable]) -> set[int]:
        """Held candidates some of whose pods are bound, and those whose hold has ended since: all their pods are bound now."""
        coming = {
            runner.hold_key[0]: runner
            for runner in self._by_job.values()
            if runner.hold_key and runner.hold_key in held
        }
        waited = Hold.objects.filter(released_at__isnull=True)
        there = Pod.objects.filter(job_uid__in=waited.values("job_uid")).values_list("job_uid", flat=True).distinct()
        job_uids = {str(uid) for uid in there.order_by()} if coming else set()
        here = {runner.job_id for runner in coming.values()}
        return {runner.job_id for uid, runner in coming.items() if runner.pods or uid in job_uids} | (self._held - here)

    def _keep(self, runners: Iterable[AdmittedGang]) -> None:
        for runner in runners:
            self._by_job[runner.job_id] = runner
            for node, _ in runner.pods:
                self._on[runner.cluster, node].add(runner.job_id)

    def _drop(self, jobs: Iterable[int]) -> None:
        for job in jobs:
            self.costs.pop(job, None)
            if (runner := self._by_job.pop(job, None)) is None:
                continue
            for node in {node for node, _ in runner.pods}:
                on = self._on[runner.cluster, node]
                on.discard(job)
                if not on:
                    del self._on[runner.cluster, node]
