"""A member in memory: pods with processes that hear kubeai's stop, an operator that replaces what is deleted, and time.

Everything that the supervisor does goes through `PlayedMember` and `World.tell`, which count steps, can kill it at any of
them, and judge what it does by the laws.
"""

import asyncio
import contextlib
import copy
from dataclasses import dataclass, field
from typing import Any

from fleet.kube.resources import NODES, PODS, PYTORCH_JOBS, Resource
from fleet.member.errors import MemberChanged, MemberMissing
from fleet.member.watching import Item, Listed
from jobs.runtime.notices import NOTICE, seconds, stamp
from supervisor.core import facts, signals
from supervisor.store import Store
from supervisor.supervisor import Supervisor

Object = dict[str, Any]
START = 1_800_000_000.0
JOB_UID = "job-1"


class Killed(BaseException):
    """The process is gone."""


@dataclass
class World:
    saves_s: float = 5.0
    """From a notice that is heard to the end of the process."""
    now: float = START
    pods: dict[str, Object] = field(default_factory=dict)
    nodes: dict[str, Object] = field(default_factory=dict)
    jobs: dict[str, Object] = field(default_factory=dict)
    deaf: set[str] = field(default_factory=set)
    """Names of pods that do not answer."""
    ends_at: dict[str, float] = field(default_factory=dict)
    deadlines: dict[str, set[str]] = field(default_factory=dict)
    """By uid of a pod, every deadline it was ever given."""
    told: list[str] = field(default_factory=list)
    restarts_told: dict[str, int] = field(default_factory=dict)
    """By uid of a pod, its restarts when its process was asked to leave."""
    looked_at: set[str] = field(default_factory=set)
    """Jobs that the last supervisor has not done with."""
    deleted: dict[str, float] = field(default_factory=dict)
    replaces: bool = True
    steps: int = 0
    kill_at: int = 0
    """The step that kills; 0: none. Odd ones before the effect of a request, even ones after it."""
    version: int = 1
    touches: int = 0
    """How often the status of a pod changes right before a notice is written on it."""

    def job(self, name: str = "bert", *, workers: int, least: int | None = None, master: bool = False) -> Object:
        template = {"spec": {"containers": [{"name": "pytorch", "image": "x"}]}}
        specs: Object = {"Worker": {"replicas": workers, "restartPolicy": "OnFailure", "template": template}}
        if master:
            specs["Master"] = {"replicas": 1, "restartPolicy": "OnFailure", "template": template}
        spec: Object = {"pytorchReplicaSpecs": specs}
        if least is not None:
            spec["elasticPolicy"] = {"minReplicas": least, "maxReplicas": workers}
        self.jobs[name] = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": name, "namespace": "default", "uid": JOB_UID},
            "spec": spec,
        }
        return self.jobs[name]

    def pod(
        self, name: str, node: str, *, role: str = "worker", managed: bool = True, how: str = "", **more: Any
    ) -> Object:
        notes = {facts.MANAGED: "true"} if managed else {}
        if how:
            notes = {facts.NOTICE_BY: how}
        owner = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "name": "bert",
            "uid": JOB_UID,
            "controller": True,
        }
        self.version += 1
        labels = {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/job-name": "bert"}
        self.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"{name}-{self.version}",
                "resourceVersion": str(self.version),
                "annotations": notes,
                "labels": labels,
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": node, **more},
            "status": {
                "phase": "Running",
                "podIP": name,
                "containerStatuses": [{"restartCount": 0, "state": {"running": {}}}],
            },
        }
        if node:
            self.nodes.setdefault(node, {"metadata": {"name": node}, "spec": {}})
        return self.pods[name]

    def reclaim(self, node: str, after_s: float | None = 30.0, *, taint: str = signals.RECLAIM_TAINT) -> None:
        value = "" if after_s is None else str(int(self.now + after_s))
        self.nodes[node]["spec"] = {"taints": [{"key": taint, "value": value, "effect": "NoSchedule"}]}

    def process_has_ended(self, name: str) -> bool:
        """Whether the process that was asked to leave, or the first where none was, has ended."""
        pod = self.pods[name]
        [status] = pod["status"]["containerStatuses"]
        before = self.restarts_told.get(pod["metadata"]["uid"], 0)
        return status["restartCount"] > before or "terminated" in status["state"]

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.kill_at:
            raise Killed

    async def tell(self, address: str) -> bool:
        self.step()
        self.told.append(address)
        if address in self.deaf or address not in self.pods:
            return False
        uid, restarts = self.pods[address]["metadata"]["uid"], self._restarts(address)
        assert self.restarts_told.setdefault(uid, restarts) == restarts, f"{address} was asked again after it had left"
        self.ends_at.setdefault(uid, self.now + self.saves_s)
        self.step()
        return True

    def advance(self, to: float) -> None:
        self.now = max(self.now, to)
        for name, pod in list(self.pods.items()):
            uid = pod["metadata"]["uid"]
            if uid in self.ends_at and self.ends_at[uid] <= self.now and not self.process_has_ended(name):
                self.restarted(name)
            if "deletionTimestamp" in pod["metadata"] and self.now >= seconds(pod["metadata"]["deletionTimestamp"]):
                self._removed(name)

    def restarted(self, name: str) -> None:
        """As the kubelet does by OnFailure."""
        [status] = self.pods[name]["status"]["containerStatuses"]
        status["restartCount"] += 1
        status["state"] = {"running": {"startedAt": stamp(int(self.now))}}
        self._touch(self.pods[name])

    def _restarts(self, name: str) -> int:
        count: int = self.pods[name]["status"]["containerStatuses"][0]["restartCount"]
        return count

    def _removed(self, name: str) -> None:
        gone = self.pods.pop(name)
        job = self.jobs.get("bert")
        if self.replaces and job and not (job["spec"].get("runPolicy") or {}).get("suspend"):
            self.pod(name, "", managed=facts.MANAGED in gone["metadata"]["annotations"])["status"]["phase"] = "Pending"

    def _touch(self, pod: Object) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)


class PlayedMember:
    def __init__(self, world: World) -> None:
        self.world = world

    async def annotate_pod(self, pod: facts.PodFacts, notes: dict[str, str | None], *, version: str = "") -> Object:
        self.world.step()
        if version and self.world.touches:
            self.world.touches -= 1
            self.world._touch(self._pod(pod))
        meta = self._pod(pod)["metadata"]
        if version and version != meta["resourceVersion"]:
            raise MemberChanged("another version", status=409)
        merged = {**meta["annotations"], **notes}
        meta["annotations"] = {name: value for name, value in merged.items() if value is not None}
        self.world._touch(self._pod(pod))
        if (text := notes.get(NOTICE)) is not None:
            self.world.deadlines.setdefault(pod.uid, set()).add(text.split('"deadline":"')[1].split('"')[0])
        self.world.step()
        return {"kind": "Pod", **copy.deepcopy(self._pod(pod))}

    async def delete_pod(self, pod: facts.PodFacts, grace_s: int | None) -> Object:
        self.world.step()
        found, world = self._pod(pod), self.world
        notice = facts.read(found).notice
        assert notice is not None, "a pod without notice was deleted"
        if facts.read(found).how is not facts.How.SIGTERM:
            over = world.now >= notice.deadline
            assert over or world.process_has_ended(pod.name), (
                f"{pod.name} deleted {notice.deadline - world.now} s early"
            )
        else:
            assert grace_s is None or world.now + grace_s <= notice.deadline + 1
        end = world.now + (0 if grace_s is None else grace_s)
        world.deleted.setdefault(pod.uid, world.now)
        found["metadata"].setdefault("deletionTimestamp", stamp(end))
        world._touch(found)
        world.step()
        return {"kind": "Pod", **copy.deepcopy(found)}

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        self.world.step()
        there = self.world.pods if resource == PODS else self.world.jobs
        if resource not in (PODS, PYTORCH_JOBS) or name not in there:
            raise MemberMissing("not there", status=404)
        return copy.deepcopy(there[name])

    async def patch(self, resource: Resource, namespace: str, name: str, body: Object) -> Object:
        self.world.step()
        job = self.world.jobs[name]
        _merge(job, body)
        if (job["spec"].get("runPolicy") or {}).get("suspend"):
            self._suspended()
        self.world.step()
        return copy.deepcopy(job)

    async def recorded_jobs(self) -> list[tuple[Resource, Object]]:
        noted = [job for job in self.world.jobs.values() if "annotations" in job["metadata"]]
        return [(PYTORCH_JOBS, copy.deepcopy(job)) for job in noted]

    def _suspended(self) -> None:
        """As the training operator does: it deletes all pods at once, whatever they are doing."""
        for name, pod in list(self.world.pods.items()):
            notice = facts.read(pod).notice
            if notice is not None and "deletionTimestamp" not in pod["metadata"]:
                over = self.world.now >= notice.deadline
                assert over or self.world.process_has_ended(name), f"{name} was suspended before it had left"
            del self.world.pods[name]

    def _pod(self, pod: facts.PodFacts) -> Object:
        found = self.world.pods.get(pod.name)
        if found is None:
            raise MemberMissing("not there", status=404)
        if found["metadata"]["uid"] != pod.uid:
            raise MemberChanged("another uid", status=409)
        return found


def _merge(target: Object, patch: Object) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value


def play(world: World, until_s: float) -> int:
    """Lets supervisors work until then, each killed one followed by another; returns how many there were."""
    end, lives = world.now + until_s, 0
    while world.now < end:
        lives += 1
        try:
            asyncio.run(_live(world, end))
        except Killed:
            world.kill_at = 0
    return lives


async def _live(world: World, end: float) -> None:
    store = Store()
    supervisor = Supervisor(PlayedMember(world), store, world.tell, clock=lambda: world.now)  # type: ignore[arg-type]
    _see(world, store)
    await supervisor.recover()
    while world.now < end:
        _see(world, store)
        looked = [key for key in {*store.jobs(), *supervisor._due, *supervisor._jobs}]
        for key in looked:
            if key in supervisor._jobs or supervisor._concerns(key):
                await supervisor.look(key)
        world.looked_at = set(supervisor._jobs)
        world.advance(world.now + 0.5)


def _see(world: World, store: Store) -> None:
    """What the watches would deliver."""
    nodes = [Item(("", name), signals.of_node(node)) for name, node in world.nodes.items()]
    pods = [Item(("default", name), facts.read(copy.deepcopy(pod))) for name, pod in world.pods.items()]
    for listed in (Listed(NODES, nodes), Listed(PODS, pods)):
        deliver(store, listed)


def deliver(store: Store, delivery: Any) -> None:
    with contextlib.suppress(StopIteration):
        store.deliver(delivery).send(None)
