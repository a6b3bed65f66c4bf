"""Who might be asked to make room, and what that would cost: kept between cycles, and read again one by one.

Read again is who changed, who has pods on a node that changed, and, each time, who is held a place for still and has pods: they
come one by one. Nobody is told to leave on this word alone: whoever orders that reads everybody anew first.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping

from fleet.models import Hold, Pod
from jobs import snapshot
from jobs.core.admission.snapshot import Quota
from jobs.core.gang.types import Runner
from jobs.core.preemption.cost import Loss
from jobs.services.scheduling import demand_provider


class Runners:
    """Reads nobody until it is first asked."""

    def __init__(self) -> None:
        self.losses: dict[int, Loss] = {}
        self._by_job: dict[int, Runner] = {}
        self._on: dict[tuple[str, str], set[int]] = defaultdict(set)
        """By cluster and node, who has pods there."""
        self._stale: set[int] | None = None
        """None: everybody."""
        self._held: set[int] = set()
        """Who was held a place for when last read."""

    def changed(self, jobs: Iterable[int]) -> None:
        if self._stale is not None:
            self._stale.update(jobs)

    def node_changed(self, cluster: str, name: str) -> None:
        if self._stale is not None:
            self._stale |= self._on.get((cluster, name), set())

    def read(self, quota: Quota, held: Collection[Hashable]) -> Mapping[int, Runner]:
        """Everybody, by job, as the rows are now; ``held`` are the keys of all promises."""
        rows = snapshot.running_jobs()
        if self._stale is not None:
            self._stale |= self._whose_pods_come(held)
            self._drop(self._stale)
            rows = rows.filter(pk__in=self._stale)
        if self._stale is None or self._stale:
            found = snapshot.load_runners(rows, quota)
            self._keep(found)
            self.losses |= demand_provider.losses_of(rows) if found else {}
            self._stale = set()
        self._held = {runner.job_id for runner in self._by_job.values() if runner.promise in held}
        return self._by_job

    def _whose_pods_come(self, held: Collection[Hashable]) -> set[int]:
        """Those with pods among who is held a place for, and who is no longer: all of his have come since."""
        coming = {runner.promise[0]: runner for runner in self._by_job.values() if runner.promise in held}
        waited = Hold.objects.filter(released_at__isnull=True)
        there = Pod.objects.filter(job_uid__in=waited.values("job_uid")).values_list("job_uid", flat=True).distinct()
        seen = {str(uid) for uid in there.order_by()} if coming else set()
        here = {runner.job_id for runner in coming.values()}
        return {runner.job_id for uid, runner in coming.items() if runner.pods or uid in seen} | (self._held - here)

    def _keep(self, found: Iterable[Runner]) -> None:
        for runner in found:
            self._by_job[runner.job_id] = runner
            for node, _ in runner.pods:
                self._on[runner.cluster, node].add(runner.job_id)

    def _drop(self, jobs: Iterable[int]) -> None:
        for job in jobs:
            self.losses.pop(job, None)
            if (runner := self._by_job.pop(job, None)) is None:
                continue
            for node in {node for node, _ in runner.pods}:
                on = self._on[runner.cluster, node]
                on.discard(job)
                if not on:
                    del self._on[runner.cluster, node]
