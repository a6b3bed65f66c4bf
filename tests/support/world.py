"""A small fleet with everything real but the kubelets: members on loopback ports, the watcher, Celery workers, a broker.

`World` speaks in verbs; waiting is always for a condition, with a deadline.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from django.db import connections
from django.utils import timezone

from fleet.errors import Unavailable
from fleet.member.client import MemberClient
from fleet.models import Cluster, Event, Node
from fleet.services.clusters import clusters, rediscovery
from fleet.services.clusters import health as cluster_health
from jobs.models import Job
from jobs.services.follow import sweep
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from simulator.controller_manager import Shape
from simulator.machinery.objects import is_finished, is_leaving, key_of
from simulator.member import SimulatedMember
from simulator.node.nodes import Pool

PATIENCE_S = 120.0
"""A machine may be ten times slower than the one at hand; what holds is seen at once."""
POLL_S = 0.1
"""Each look is a query or more, in which other tests do not run."""

POLICY = """
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: example-policy}
spec:
  propagateDeps: true
  placement: {replicaScheduling: {replicaSchedulingType: Divided, customSchedulingType: Gang}}
  resourceSelectors:
    - {apiVersion: kubeflow.org/v1, kind: PyTorchJob}
    - {apiVersion: batch/v1, kind: Job}
"""


def pytorch_job(
    name: str, *, workers: int = 2, gpus: int = 1, duration: str = "", config_map: str = "", **annotations: str
) -> str:
    notes = {**({"convoy.dev/duration": duration} if duration else {}), **annotations}
    limits = {"nvidia.com/gpu": gpus}
    container = {"name": "pytorch", "image": "example.com/train", "resources": {"limits": limits}}
    spec: dict[str, Any] = {"containers": [container]}
    if config_map:
        spec["volumes"] = [{"name": "config", "configMap": {"name": config_map}}]
    template = {"metadata": {"annotations": notes}, "spec": spec}
    replicas = {"Master": {"replicas": 1, "template": template}}
    if workers:
        replicas["Worker"] = {"replicas": workers, "template": template}
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    return yaml.safe_dump(body)


class StillMember(SimulatedMember):
    """An API server without its controllers."""

    def start(self) -> None:
        self._serve()


def joined(member: SimulatedMember) -> Cluster:
    """Its cluster. A request of the join has five seconds, which a busy machine may let pass."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return clusters.join(member.name, yaml.safe_dump(member.kubeconfig()), by="test", now=timezone.now())
        except Unavailable:
            if time.monotonic() > deadline:
                raise


class World:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.members: dict[str, SimulatedMember] = {}
        self.clients: dict[str, MemberClient] = {}

    def member(
        self,
        name: str,
        *nodes: int,
        time_scale: float = 20.0,
        scheduler: str = "",
        models: Sequence[str] = (),
        gpu_class: str = "",
        **options: Any,
    ) -> SimulatedMember:
        """A running member with one node for each number of GPUs, joined to the fleet and known in full.

        ``models`` are those of the nodes' GPUs, in the same order. With ``gpu_class`` they are had by claims of that class.
        """
        models = [*models, *[""] * (len(nodes) - len(models))]
        pools = tuple(
            Pool(f"pool{i}", 1, "64", "512Gi", gpus, gpu_model=model, gpu_class=gpu_class)
            for i, (gpus, model) in enumerate(zip(nodes, models, strict=True))
        )
        made = SimulatedMember(name, self.home / name, Shape(pools, {}, scheduler), time_scale=time_scale, **options)
        made.start()
        self.members[name] = made
        self.clients[name] = MemberClient(made.access())
        joined(made)
        shown = Node.objects.filter(cluster__name=name)
        self.until(lambda: shown.count() == len(nodes), f"{name} shows its nodes")
        return made

    def still(self, name: str, gpus: int, **options: Any) -> None:
        """A joined member that serves its API and does nothing else; its one node is written down, not watched."""
        made = StillMember(name, self.home / name, Shape((), {}), **options)
        made.start()
        self.members[name] = made
        self.clients[name] = MemberClient(made.access())
        cluster, now = joined(made), timezone.now()
        offered = {"cpu": 10**6, "memory": 2**50, "nvidia.com/gpu": gpus * 100, "pods": 10**5}
        cluster.nodes.create(name="node", ready=True, allocatable=offered)
        Cluster.objects.filter(pk=cluster.pk).update(synced_at=now)

    def stop(self, *others: Callable[[], object]) -> None:
        """All members, and what else has to end, at once: each end waits for threads that wait for their next look."""
        ends = [*others, *(member.stop for member in self.members.values())]
        with ThreadPoolExecutor(len(ends)) as together:
            for end in [together.submit(end) for end in ends]:
                end.result(PATIENCE_S)

    def apply(self, *texts: str) -> None:
        submit.apply(manifests.parse("\n---\n".join(texts).encode()), by="test", now=timezone.now())

    def job(self, name: str) -> Job:
        return Job.objects.select_related("cluster").get(name=name)

    def finish(self, name: str, *, on: str = "") -> None:
        """The pods of a job succeed, however long they were to run, each once it runs: a job runs before all of them do."""
        for home, member in self.members.items():
            if member._manager and on in ("", home):
                read = partial(self.stored_pods, home)
                self.end_pods(name, read, partial(member._manager.crash_pod, code=0))

    def end_pods(self, name: str, read: Callable[[], list[dict[str, Any]]], ends: Callable[[str], bool]) -> None:
        """Those that are there now; ``ends`` ends one that runs, and says whether it did."""

        def left() -> set[str]:
            """Keys of those that run, or will."""
            pods = [pod for pod in read() if pod["metadata"]["name"].startswith(f"{name}-")]
            return {key_of(pod) for pod in pods if not is_finished(pod) and not is_leaving(pod)}

        due = left()

        def ended() -> bool:
            due.difference_update([key for key in due if ends(key)])
            return not due or not due & left()

        self.until(ended, f"each pod of {name} ends")

    def suspend(self, name: str) -> None:
        actions.suspend(self.job(name), by="test", now=timezone.now())

    def resume(self, name: str) -> None:
        actions.resume(self.job(name), by="test", now=timezone.now())

    def delete(self, name: str) -> None:
        actions.delete(self.job(name), by="test", now=timezone.now())

    def until(self, holds: Callable[[], bool], told: str, *, patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not holds():
            if time.monotonic() > deadline:
                states = [(j.name, j.state, str(j.cluster), (j.reason or {}).get("message")) for j in Job.objects.all()]
                raise AssertionError(f"never true: {told}; jobs: {states}")
            time.sleep(POLL_S)

    def expect(self, name: str, state: str, *, on: str = "", patience_s: float = PATIENCE_S) -> Job:
        def there() -> bool:
            now = Job.objects.values_list("state", "cluster__name").get(name=name)
            return now[0] == state and on in ("", now[1])

        self.until(there, f"{name} is {state} {on}", patience_s=patience_s)
        return self.job(name)

    def copies(self, plural: str = "pytorchjobs", group: str = "kubeflow.org/v1") -> dict[str, list[str]]:
        """The names of all copies of jobs, by member."""
        root = f"/apis/{group}/{plural}"
        return {
            name: [each["metadata"]["name"] for each in self.clients[name].list(root)["items"]] for name in self.members
        }

    def pods(self, member: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.clients[member].list("/api/v1/pods")["items"]
        return items

    def stored_pods(self, member: str) -> list[dict[str, Any]]:
        """The member's pods, read behind its API, which may be away."""
        server = self.members[member]._server

        async def read() -> list[dict[str, Any]]:
            return list(server.store.of_kind(("", "pods")))

        return asyncio.run_coroutine_threadsafe(read(), server._loop).result(PATIENCE_S)

    def events(self, name: str) -> list[tuple[str, str]]:
        uid = str(self.job(name).uid)
        return list(Event.objects.filter(regarding_uid=uid).order_by("pk").values_list("reason", "message"))


class Beat:
    """The beat's entries that jobs need, more often than in the product."""

    def __init__(self) -> None:
        self._sweeper = sweep.Sweeper()
        self._sweeper.longest_pause = timedelta(seconds=2)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Beat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.8):
            cluster_health.check_all(timezone.now())
            rediscovery.start(timezone.now(), random.Random(0))
            self._sweeper.run(timezone.now())
        connections.close_all()
