"""The Job controller for batch/v1: carries out the decisions of `plan` through the API server."""

import contextlib

from fleet.kube.resources import JOBS, PODS
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing
from simulator.machinery.clock import Moments, parse_stamp
from simulator.machinery.conditions import difference
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import (
    condition,
    controller_of,
    is_finished,
    is_true,
    key_of,
    name_of,
    namespace_of,
    phase_of,
    uid_of,
)
from simulator.operators.job.plan import Times, decide, is_ours

GATHER_S = 0.02


class JobController(Controller):
    name = "job"
    workers = 2

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._jobs = cluster.informer(JOBS)
        self._pods = cluster.informer(PODS)
        self._started = Moments()
        self._completed = Moments()
        self._failed_at: dict[str, float] = {}
        self._jobs.listen(self._on_job)
        self._pods.listen(self._on_pod)

    def reconcile(self, key: str) -> float | None:
        job = self._jobs.get(key)
        if job is None or not is_ours(job):
            return None
        decision = decide(job, self._pods.owned_by(uid_of(job)), self._times(job))
        if decision.expired:
            self.client.delete(self._path(job), uid=uid_of(job))
            return None
        for name in decision.delete:
            with contextlib.suppress(MemberMissing):
                self._pods.learn_if_object(self.client.delete(PODS.path(namespace_of(job), name)))
        for pod in decision.create:
            with contextlib.suppress(MemberExists):
                self._pods.learn(self.client.create(PODS.path(namespace_of(job)), pod))
        self._write_status(job, decision.status)
        return GATHER_S if decision.create else decision.again_s

    def _on_job(self, kind: str, job: Object) -> None:
        if kind == "DELETED":
            for moments in (self._started, self._completed):
                moments.forget(uid_of(job))
            self._failed_at.pop(uid_of(job), None)
        else:
            self.queue.add(key_of(job))

    def _on_pod(self, _kind: str, pod: Object) -> None:
        owner = controller_of(pod)
        if not owner or owner["kind"] != "Job":
            return
        if phase_of(pod) == "Failed" and is_finished(pod):
            self._failed_at[owner["uid"]] = max(self._failed_at.get(owner["uid"], 0.0), _ended_at(pod))
        self.queue.add_after(f"{namespace_of(pod)}/{owner['name']}", GATHER_S)

    def _times(self, job: Object) -> Times:
        status, uid = job.get("status") or {}, uid_of(job)
        over = status.get("completionTime")
        if not over and is_true(job, "Failed"):
            over = (condition(job, "Failed") or {})["lastTransitionTime"]
        return Times(
            now=self.clock.now(),
            real=self.clock.real,
            started=self._started.at(uid, status["startTime"]) if status.get("startTime") else None,
            completed=self._completed.at(uid, over) if over else None,
            last_failure=self._failed_at.get(uid),
        )

    def _write_status(self, job: Object, status: Object) -> None:
        patch = difference(job.get("status") or {}, status)
        if not patch:
            return
        now = self.clock.now()
        if patch.get("startTime"):
            self._started.note(uid_of(job), now)
        if any(c["type"] in ("Complete", "Failed") for c in patch.get("conditions") or []):
            self._completed.note(uid_of(job), now)
        body = {"metadata": {"uid": uid_of(job)}, "status": patch}
        self._jobs.learn(self.client.merge_patch(f"{self._path(job)}/status", body))

    def _path(self, job: Object) -> str:
        return JOBS.path(namespace_of(job), name_of(job))


def _ended_at(pod: Object) -> float:
    ends = [
        parse_stamp(entry["state"]["terminated"]["finishedAt"])
        for entry in (pod.get("status") or {}).get("containerStatuses") or []
        if ((entry.get("state") or {}).get("terminated") or {}).get("finishedAt")
    ]
    return max(ends, default=0.0)
