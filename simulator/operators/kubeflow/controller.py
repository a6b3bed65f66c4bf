"""The training operator for the kubeflow.org kinds: carries out the decisions of `plan` through the API server.

Pods for Volcano are created only after their PodGroup is enqueued. Otherwise the pods of several groups could fill a
namespace's quota and wait for each other without end.
"""

import contextlib
from collections.abc import Callable
from functools import partial

from fleet.kube.resources import JOBS, PODS, SERVICES, VOLCANO_POD_GROUPS
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing
from simulator.machinery.clock import Moments
from simulator.machinery.conditions import difference
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import controller_of, is_true, key_of, name_of, namespace_of, phase_of, uid_of
from simulator.operators.kubeflow.kinds import KUBEFLOW_KINDS
from simulator.operators.kubeflow.plan import Decision, Times, decide, is_ours
from simulator.operators.kubeflow.pods import KubeflowKind, own_group, pod_of, service_of, volcano_group

GATHER_S = 0.02
"""How long changes of a job's pods are collected, because they often change at the same time."""


class KubeflowOperator(Controller):
    """Keys are ``Kind/namespace/name``."""

    name = "kubeflow"
    workers = 2

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._families = {f.kind: f for f in KUBEFLOW_KINDS if cluster.serves(f.resource)}
        self._jobs = {kind: cluster.informer(f.resource) for kind, f in self._families.items()}
        self._pods = cluster.informer(PODS)
        self._groups = cluster.informer(VOLCANO_POD_GROUPS) if cluster.serves(VOLCANO_POD_GROUPS) else None
        self._started = Moments()
        self._completed = Moments()
        self._replaced: dict[str, int] = {}
        for kind, informer in self._jobs.items():
            informer.listen(partial(self._on_job, kind))
        self._pods.listen(self._on_pod)
        self._batch = cluster.informer(JOBS)
        self._batch.listen(self._on_pod)
        if self._groups:
            self._groups.listen(self._on_group)

    def reconcile(self, key: str) -> float | None:
        kind, _, where = key.partition("/")
        kubeflow_kind, job = self._families[kind], self._jobs[kind].get(where)
        if job is None or not is_ours(job):
            return None
        uid = uid_of(job)
        pods = [*self._pods.owned_by(uid), *map(self._as_pod, self._batch.owned_by(uid))]
        decision = decide(kubeflow_kind, job, pods, self._times(job))
        if decision.expired:
            self.client.delete(self._path(kubeflow_kind, job), uid=uid)
            return None
        self._act(kubeflow_kind, job, decision)
        self._write_status(kubeflow_kind, job, decision.status)
        return decision.again_s

    def _on_job(self, kind: str, change: str, job: Object) -> None:
        if change == "DELETED":
            self._replaced.pop(uid_of(job), None)
            self._started.forget(uid_of(job))
            self._completed.forget(uid_of(job))
        else:
            self.queue.add(f"{kind}/{key_of(job)}")

    def _on_pod(self, _change: str, pod: Object) -> None:
        owner = controller_of(pod)
        if owner and owner["kind"] == JOBS.kind and (batch := self._batch.get(f"{namespace_of(pod)}/{owner['name']}")):
            owner = controller_of(batch)
        if owner and owner["kind"] in self._families:
            self.queue.add_after(f"{owner['kind']}/{namespace_of(pod)}/{owner['name']}", GATHER_S)

    def _on_group(self, _change: str, group: Object) -> None:
        """A group is named after its job."""
        for kind, informer in self._jobs.items():
            if informer.get(key_of(group)):
                self.queue.add(f"{kind}/{key_of(group)}")

    def _times(self, job: Object) -> Times:
        status, uid = job.get("status") or {}, uid_of(job)
        return Times(
            now=self.clock.now(),
            real=self.clock.real,
            started=self._started.at(uid, status["startTime"]) if status.get("startTime") else None,
            completed=self._completed.at(uid, status["completionTime"]) if status.get("completionTime") else None,
            replaced=self._replaced.get(uid, 0),
        )

    def _act(self, kubeflow_kind: KubeflowKind, job: Object, decision: Decision) -> None:
        namespace = namespace_of(job)
        self._replaced[uid_of(job)] = self._replaced.get(uid_of(job), 0) + decision.replaced
        jobs = {name_of(each) for each in self._batch.owned_by(uid_of(job))}
        for name in decision.delete:
            with contextlib.suppress(MemberMissing):
                if name in jobs:
                    self.client.delete(JOBS.path(namespace, name), propagation="Background")
                else:
                    self._pods.learn_if_object(self.client.delete(PODS.path(namespace, name)))
        for name in decision.drop_services if kubeflow_kind.services else ():
            with contextlib.suppress(MemberMissing):
                self.client.delete(SERVICES.path(namespace, name))
        group = own_group(kubeflow_kind, job)
        if group and decision.drop_group:
            with contextlib.suppress(MemberMissing):
                self.client.delete(group[0].path(namespace, name_of(group[1])))
        elif group and decision.create:
            self._create(group[0].path(namespace), group[1])
        if decision.create and self._is_let_in(kubeflow_kind, job):
            self._make(kubeflow_kind, job, decision)

    def _make(self, kubeflow_kind: KubeflowKind, job: Object, decision: Decision) -> None:
        namespace = namespace_of(job)
        for resource, body in kubeflow_kind.extras(job):
            self._create(resource.path(namespace), body)
        for role, index in decision.create:
            if kubeflow_kind.services:
                self._create(SERVICES.path(namespace), service_of(kubeflow_kind, job, role, index))
            pod = pod_of(kubeflow_kind, job, role, index)
            if kubeflow_kind.made_by_job(role):
                self._create(JOBS.path(namespace), kubeflow_kind.job_of(job, pod), self._batch.learn)
            else:
                self._create(PODS.path(namespace), pod, self._pods.learn)

    def _as_pod(self, batch: Object) -> Object:
        """A pod that represents a Job: the one that the Job keeps running."""
        running = any(phase_of(pod) == "Running" for pod in self._pods.owned_by(uid_of(batch)))
        ends = {"Succeeded": is_true(batch, "Complete"), "Failed": is_true(batch, "Failed"), "Running": running}
        phase = next((phase for phase, so in ends.items() if so), "Pending")
        return {"metadata": batch["metadata"], "spec": {}, "status": {"phase": phase}}

    def _is_let_in(self, kubeflow_kind: KubeflowKind, job: Object) -> bool:
        name = volcano_group(kubeflow_kind, job)
        if not name or self._groups is None:
            return True
        group = self._groups.get(f"{namespace_of(job)}/{name}") or {}
        return (group.get("status") or {}).get("phase") not in (None, "", "Pending")

    def _create(self, path: str, body: Object, learn: Callable[[Object], None] = lambda _made: None) -> None:
        with contextlib.suppress(MemberExists):
            learn(self.client.create(path, body))

    def _write_status(self, kubeflow_kind: KubeflowKind, job: Object, status: Object) -> None:
        patch = difference(job.get("status") or {}, status)
        if not patch:
            return
        now = self.clock.now()
        if patch.get("startTime"):
            self._started.note(uid_of(job), now)
        if patch.get("completionTime"):
            self._completed.note(uid_of(job), now)
        body = {"metadata": {"uid": uid_of(job)}, "status": patch}
        self._jobs[kubeflow_kind.kind].learn(self.client.merge_patch(f"{self._path(kubeflow_kind, job)}/status", body))

    def _path(self, kubeflow_kind: KubeflowKind, job: Object) -> str:
        return kubeflow_kind.resource.path(namespace_of(job), name_of(job))
