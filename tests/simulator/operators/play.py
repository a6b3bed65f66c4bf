"""A job of some operator, its pods and its Jobs, played step by step without a server."""

from typing import Any

from simulator.machinery.objects import name_of
from simulator.node.lifecycle import ordered_end
from simulator.operators.operator import Dependents, Operator, ReconcileResult
from tests.simulator.operators.operator_cases import NOW

TEMPLATE = {"spec": {"containers": [{"name": "x", "image": "i"}]}}


class Play:
    def __init__(self, operator: Operator, **spec: Any) -> None:
        self.operator = operator
        self.job: dict = {"metadata": {"name": "bert", "namespace": "ai", "uid": "u1"}, "spec": spec}
        self.pods: dict[str, dict] = {}
        self.jobs: dict[str, dict] = {}
        self.group: dict | None = None
        self.aborted = False
        self.scalers: list[dict] = []
        self.cluster: dict | None = None
        self.running: dict[str, int] = {}

    def step(self, now: float = NOW) -> ReconcileResult:
        found = Dependents(
            list(self.pods.values()),
            list(self.jobs.values()),
            self.group,
            self.aborted,
            self.scalers,
            self.cluster,
            self.running,
        )
        step = self.operator.step(self.job, found, now)
        self.job["status"] = step.status
        for gone in step.remove:
            self.pods.pop(name_of(gone), None)
            self.jobs.pop(name_of(gone), None)
            self.cluster = None if gone is self.cluster else self.cluster
        for pod, notes in step.annotate:
            self.pods[name_of(pod)]["metadata"].setdefault("annotations", {}).update(notes)
            if ordered := ordered_end(self.pods[name_of(pod)]):
                self._set("Failed" if ordered[0] else "Succeeded", ordered[0], name_of(pod))
        for _, dependent, status in step.statuses:
            dependent["status"] = status
        for _, dependent, spec in step.resize:
            dependent["spec"] |= spec
        for _, body in step.make:
            if body["kind"] == "Pod":
                self.pods.setdefault(name_of(body), {**body, "status": {"phase": "Pending"}})
            elif body["kind"] == "Job":
                self.jobs.setdefault(name_of(body), body)
            elif body["kind"] == "PodGroup":
                self.group = self.group or body
            elif body["kind"] == "RayCluster":
                self.cluster = self.cluster or body
        return step

    def are(self, phase: str, *names: str, code: int = 0) -> None:
        """These pods (all without names) are in that phase; the operator sees it."""
        self._set(phase, code, *(names or list(self.pods)))
        self.step()

    def _set(self, phase: str, code: int, *names: str) -> None:
        state = {"terminated": {"exitCode": code}}
        for name in names:
            self.pods[name]["status"] = {"phase": phase, "containerStatuses": [{"state": state if code else {}}]}

    def end(self, condition: str, *names: str) -> None:
        """These Jobs (all without names) have ended so."""
        for name in names or list(self.jobs):
            self.jobs[name]["status"] = {"conditions": [{"type": condition, "status": "True"}]}
        self.step()

    @property
    def phase(self) -> str:
        return str(self.job["status"]["phase"])
