"""The training operator for PyTorchJob: carries out what `pytorch_plan` decides through the member's API."""

import contextlib

from fleet.kube.resources import POD_GROUPS, PODS, PYTORCH_JOBS, SERVICES
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing

from .clock import Moments
from .conditions import difference
from .controller import Cluster, Controller
from .objects import controller_of, key_of, name_of, namespace_of, uid_of
from .pytorch_plan import Decision, Times, decide, is_ours
from .pytorch_pods import KIND, own_group, pod_of, service_of

GATHER_S = 0.02
"""Pods of one job change together: waiting this long turns their changes into one write."""


class PyTorchOperator(Controller):
    name = "pytorch"
    workers = 2

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._jobs = cluster.informer(PYTORCH_JOBS)
        self._pods = cluster.informer(PODS)
        self._started = Moments()
        self._completed = Moments()
        self._replaced: dict[str, int] = {}
        self._jobs.listen(self._on_job)
        self._pods.listen(self._on_pod)

    def reconcile(self, key: str) -> float | None:
        job = self._jobs.get(key)
        if job is None or not is_ours(job):
            return None
        uid = uid_of(job)
        decision = decide(job, self._pods.owned_by(uid), self._times(job))
        if decision.expired:
            self.client.delete(self._path(job), uid=uid)
            return None
        self._act(job, decision)
        self._write_status(job, decision.status)
        return decision.again_s

    def _on_job(self, kind: str, job: Object) -> None:
        if kind == "DELETED":
            self._replaced.pop(uid_of(job), None)
            self._started.forget(uid_of(job))
            self._completed.forget(uid_of(job))
        else:
            self.queue.add(key_of(job))

    def _on_pod(self, _kind: str, pod: Object) -> None:
        owner = controller_of(pod)
        if owner and owner["kind"] == KIND:
            self.queue.add_after(f"{namespace_of(pod)}/{owner['name']}", GATHER_S)

    def _times(self, job: Object) -> Times:
        status, uid = job.get("status") or {}, uid_of(job)
        return Times(
            now=self.clock.now(),
            real=self.clock.real,
            started=self._started.at(uid, status["startTime"]) if status.get("startTime") else None,
            completed=self._completed.at(uid, status["completionTime"]) if status.get("completionTime") else None,
            replaced=self._replaced.get(uid, 0),
        )

    def _act(self, job: Object, decision: Decision) -> None:
        namespace = namespace_of(job)
        self._replaced[uid_of(job)] = self._replaced.get(uid_of(job), 0) + decision.replaced
        for name in decision.delete:
            with contextlib.suppress(MemberMissing):
                self._pods.learn_if_object(self.client.delete(PODS.path(namespace, name)))
        for name in decision.drop_services:
            with contextlib.suppress(MemberMissing):
                self.client.delete(SERVICES.path(namespace, name))
        group = own_group(job)
        if group and decision.drop_group:
            with contextlib.suppress(MemberMissing):
                self.client.delete(POD_GROUPS.path(namespace, name_of(group)))
        elif group and decision.create:
            self._create(POD_GROUPS.path(namespace), group)
        for role, index in decision.create:
            self._create(SERVICES.path(namespace), service_of(job, role, index))
            made = self._create(PODS.path(namespace), pod_of(job, role, index))
            if made:
                self._pods.learn(made)

    def _create(self, path: str, body: Object) -> Object | None:
        try:
            return self.client.create(path, body)
        except MemberExists:
            return None

    def _write_status(self, job: Object, status: Object) -> None:
        patch = difference(job.get("status") or {}, status)
        if not patch:
            return
        now = self.clock.now()
        if patch.get("startTime"):
            self._started.note(uid_of(job), now)
        if patch.get("completionTime"):
            self._completed.note(uid_of(job), now)
        body = {"metadata": {"uid": uid_of(job)}, "status": patch}
        self._jobs.learn(self.client.merge_patch(f"{self._path(job)}/status", body))

    def _path(self, job: Object) -> str:
        return PYTORCH_JOBS.path(namespace_of(job), name_of(job))
