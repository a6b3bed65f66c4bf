"""Every kind of process of the product at once, as threads with connections of their own: what they write meets in the rows.

Members are real API servers without controllers; what runs in them is reported by the watchers of the rush, from the works.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

from django.db import connections
from django.utils import timezone

from fleet.core.members import marks
from fleet.core.members.observed import Mark, ObservedNode, ObservedPod, OwnPod
from fleet.errors import Conflict, NotFound
from fleet.models import Cluster
from fleet.services.clusters import clusters
from fleet.services.clusters import health as cluster_health
from fleet.services.watching.node_pod_sync import NodePodSync
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.follow import sweep
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle import works
from jobs.services.scheduling import loop
from jobs.services.submission.changes import actions

NODE = {"cpu": 10**6, "memory": 2**50, "nvidia.com/gpu": 64, "pods": 10**4}
_RUNS_FOR = 3
"""Reports of a copy until it has succeeded."""


class Watcher:
    """Reports, of every member, that copies run and then have succeeded."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._supplies: dict[int, NodePodSync] = {}
        self._reports: Counter[tuple[object, int]] = Counter()

    def step(self) -> None:
        for cluster in Cluster.objects.defer("access"):
            supply = self._supplies.get(cluster.pk)
            if supply is None:
                supply = self._supplies[cluster.pk] = NodePodSync(cluster.pk)
                supply.list_nodes([ObservedNode("node", True, False, {}, [], NODE)])
                supply.list_pods([])
            self._report(cluster, supply)

    def _report(self, cluster: Cluster, supply: NodePodSync) -> None:
        copies = list(Work.objects.filter(cluster=cluster, state=Work.State.APPLIED))
        self._dice.shuffle(copies)
        by_kind: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for work in copies[:40]:
            self._reports[work.job_uid, work.attempt] += 1
            done = self._reports[work.job_uid, work.attempt] > _RUNS_FOR
            pod = _pod(work)
            if done:
                supply.lose_pod(pod.key)
            else:
                supply.see_pod(pod)
            by_kind.setdefault((work.api_version, work.kind), []).append(_copy(work, done))
        now = timezone.now()
        changed = {(mark.job_uid, mark.attempt) for mark in supply.write(now)}
        follower = JobEventHandler()
        for (api_version, kind), objects in by_kind.items():
            follower.on_update(cluster.pk, registry.kind_of(api_version, kind).resource, objects, now)
        if changed:
            follower.on_pods_changed(cluster.pk, changed, now)


def _pod(work: Work) -> ObservedPod:
    now = timezone.now()
    own = OwnPod(
        mark=Mark(work.job_uid, work.attempt), uid=f"{work.job_uid}-{work.attempt}", role="Master", index=0,
        phase="Running", ready_containers=1, containers=1, restarts=0, reason="", message="", created_at=now, started_at=now,
    )  # fmt: skip
    return ObservedPod(
        work.namespace, f"{work.name}-{work.attempt}", "node", True, {"nvidia.com/gpu": 1, "pods": 1}, own
    )


def _copy(work: Work, done: bool) -> dict[str, Any]:
    labels = {marks.JOB_UID: str(work.job_uid), marks.ATTEMPT: str(work.attempt)}
    condition = {"type": "Succeeded" if done else "Running", "status": "True"}
    metadata = {"name": work.name, "namespace": work.namespace, "labels": labels, "uid": work.object_uid}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


class Rush:
    """Starts what the product starts, several of each; collects what breaks."""

    def __init__(self, seed: int) -> None:
        self._seeds = (random.Random(seed + n) for n in count())  # noqa: S311
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.broken: list[str] = []
        self.steps: Counter[str] = Counter()

    def run(self, until: Callable[[], bool], patience_s: float) -> bool:
        """Whether it came true in time; every thread has ended."""
        for step in (self._schedule, self._push, self._watch) * 2 + (self._check, self._edit, self._use):
            name, body = step.__name__, step(next(self._seeds))
            self._threads.append(threading.Thread(target=self._loop, args=(name, body), daemon=True))
        for thread in self._threads:
            thread.start()
        deadline = time.monotonic() + patience_s
        while not (held := until()) and time.monotonic() < deadline and not self.broken:
            time.sleep(0.2)
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        return held

    def _loop(self, name: str, step: Callable[[], object]) -> None:
        try:
            while not self._stop.wait(0.01):
                step()
                self.steps[name] += 1
        except Exception as e:  # noqa: BLE001 - whatever breaks is what the test wants to know
            self.broken.append(f"{name}: {type(e).__name__}: {e}")
        finally:
            connections.close_all()

    def _schedule(self, _: random.Random) -> Callable[[], object]:
        return lambda: loop.run(timezone.now)

    def _push(self, dice: random.Random) -> Callable[[], object]:
        def step() -> None:
            due = list(works.due(timezone.now()).values_list("pk", flat=True)[:30])
            dice.shuffle(due)
            for pk in due:
                dispatcher.push(pk, timezone.now)

        return step

    def _watch(self, dice: random.Random) -> Callable[[], object]:
        return Watcher(dice).step

    def _check(self, _: random.Random) -> Callable[[], object]:
        def step() -> None:
            cluster_health.check_all(timezone.now())
            sweep.run(timezone.now())

        return step

    def _edit(self, dice: random.Random) -> Callable[[], object]:
        """An admin, who labels and cordons."""

        def step() -> None:
            row = dice.choice(list(Cluster.objects.all()))
            clusters.set_labels(row, {"turn": str(dice.random())}, by="ada", now=timezone.now())
            clusters.cordon(row, not row.cordoned, by="ada", now=timezone.now())
            self._stop.wait(0.05)

        return step

    def _use(self, dice: random.Random) -> Callable[[], object]:
        """Users, who suspend, resume and delete."""
        deeds = [actions.suspend, actions.suspend, actions.delete]

        def step() -> None:
            jobs = list(Job.objects.exclude(state__in=Job.FINISHED).order_by("?")[:5])
            for job in jobs:
                deed = actions.resume if job.suspended else dice.choice(deeds)
                try:
                    deed(job, by="sam", now=timezone.now())
                except (Conflict, NotFound):
                    continue
            self._stop.wait(0.1)

        return step
