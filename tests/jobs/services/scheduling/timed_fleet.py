"""A fleet in rows on a virtual clock: gangs come, run for their time and end; all between is done by the services.

What queues and users got is read from the rows of attempts, in GPU-hours.
"""

import heapq
from collections import defaultdict
from datetime import timedelta
from itertools import count

import pytest
import yaml
from django.utils import timezone

from fleet.models import Cluster
from jobs.models import Attempt, Job
from jobs.services.follow import sweep
from jobs.services.lifecycle import cycle_requests
from jobs.services.scheduling import loop, runtimes
from jobs.services.submission import manifests, submit
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support import books
from tests.support.books import APIS, GPU
from tests.support.world import POLICY, pytorch_job

LABEL = "quota.scheduling.alibabacloud.com/name"
PLENTY = {"cpu": 10**6, "memory": "900000Gi", "kube-queue/max-jobs": 1000}
TICK_S = 900
"""Seconds between two cycles that no event asks for: beyond the patience of a big gang."""
KEEPS_CACHE_S = 10**6
"""For the setting `cache_max_age_s`, so that what is read anew is read because of a restart, and not in every cycle."""


class TimedFleet:
    def __init__(self, gpus: int, *leaves: dict, **of_root: str) -> None:
        """So many GPUs in nodes of 8, under a tree that has all of them."""
        self.began = timezone.now()
        self.seconds = 0
        self.restarts: set[int] = set()
        """At these steps the process that schedules starts anew, and knows by then what it knew before."""
        self._events: list[tuple[int, int, str, tuple[str, ...]]] = []
        self._order, self._lasts, self._many = count(), dict[str, int](), count()
        fields = {"state_since": self.now, "joined_at": self.now, "synced_at": self.now}
        cluster = Cluster.objects.create(name="north", access={}, state=Cluster.State.READY, apis=APIS, **fields)
        for number in range(gpus // 8):
            offered = {"cpu": 10**6, "memory": 2**50, GPU: 8, "pods": 1000}
            cluster.nodes.create(name=f"n{number}", ready=True, allocatable=offered)
        whole = {**PLENTY, GPU: gpus}
        self.root = lambda *below: manifest(quota("root", whole, whole, *below, attributes=of_root))
        trees.apply(self.root(*leaves), by="system", now=self.now)

    @property
    def now(self):
        return self.began + timedelta(seconds=self.seconds)

    def submit(
        self, leaf: str, gangs: int, pods: int, gpus: int, lasts: int, *, at: int = 0, by: str = "ada"
    ) -> list[str]:
        """So many alike, which come ``at`` seconds after the beginning; returns their names."""
        names, texts = [], []
        for _ in range(gangs):
            names.append(f"{leaf}-{by}-{next(self._many)}")
            body = yaml.safe_load(pytorch_job(names[-1], workers=pods - 1, gpus=gpus))
            body["metadata"]["labels"] = {LABEL: leaf}
            texts.append(yaml.safe_dump(body))
            self._lasts[names[-1]] = lasts
        self._push(at, "comes", (by, "\n---\n".join((POLICY, *texts))))
        return names

    def play(self, until: int) -> None:
        """Every event up to so many seconds after the beginning, with the cycles that it leads to."""
        steps = count()
        while self.seconds < until:
            self.seconds = min(self._events[0][0] if self._events else until, self.seconds + TICK_S, until)
            while self._events and self._events[0][0] <= self.seconds:
                _, _, what, about = heapq.heappop(self._events)
                getattr(self, f"_{what}")(*about)
            if next(steps) in self.restarts:
                self._restart()
            self._cycle()

    def gpu_hours(self, by: str = "leaf") -> dict[str, float]:
        """Of attempts until now, by leaf or by user."""
        hours: dict[str, float] = defaultdict(float)
        for attempt in Attempt.objects.select_related("job"):
            until = attempt.ended_at or self.now
            key = attempt.job.leaf if by == "leaf" else attempt.job.submitted_by
            hours[key] += attempt.job.gpus * (until - attempt.placed_at).total_seconds() / 3600
        return dict(hours)

    def starts(self) -> list[tuple[int, str]]:
        """(seconds after the beginning, job) of each start, in order."""
        rows = Attempt.objects.order_by("placed_at", "pk").values_list("placed_at", "job__name")
        return [(round((at - self.began).total_seconds()), name) for at, name in rows]

    def _restart(self) -> None:
        sweep.run(self.now)
        cache, at = loop._idle_caches.pop(), self.now.timestamp()
        cache.refresh(self.now)
        kept = cache.runs().use_by_user(at)
        assert kept and kept == pytest.approx(runtimes.load(self.now).use_by_user(at), rel=1e-9)

    def _cycle(self) -> None:
        cycle_requests.request()
        loop.run(lambda: self.now)
        books.sent()
        for name in Job.objects.filter(state=Job.State.PLACED).values_list("name", flat=True):
            books.report(name, "Running", now=self.now)
            self._push(self.seconds + self._lasts[name], "ends", (name,))
        assert not Job.objects.filter(state=Job.State.RECLAIMING).exists(), "no gang is to be stopped in this fleet"

    def _comes(self, by: str, text: str) -> None:
        submit.apply(manifests.parse(text.encode()), by=by, now=self.now)

    def _ends(self, name: str) -> None:
        books.report(name, "Succeeded", now=self.now)

    def _push(self, at: int, what: str, about: tuple[str, ...]) -> None:
        heapq.heappush(self._events, (at, next(self._order), what, about))
