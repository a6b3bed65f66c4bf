"""What people do to a world, over REST and the Kubernetes-style API; each repeats what was not answered, as a person would.

Knows paths and status codes, and keeps every answer for the judge.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

GPU = "nvidia.com/gpu"
RUNS_S = 40
"""Simulated seconds that a program runs: two real ones."""
LONG_S = 110
FOREVER_S = 36000
SUCCEEDS, FAILS, WAITS, IS_DELETED = "Succeeded", "Failed", "Queued", ""
_AGAIN_S = 0.3
_ANSWERS_S = 8.0


@dataclass(frozen=True, slots=True)
class Answer:
    door: str
    request: str
    status: int
    """0: there was no answer."""
    at: float
    body: str = ""


class Users(threading.Thread):
    def __init__(self, port: int, kube_port: int, token: str, purge: str, queued: bool, toleration_s: int) -> None:
        super().__init__(name="users", daemon=True)
        self._port, self._kube_port, self._token = port, kube_port, token
        self._policy = policy(purge, queued, toleration_s)
        self.answers: list[Answer] = []
        self.ends: dict[str, str] = {}
        self.stopping = threading.Event()
        self.done = threading.Event()
        self.error = ""

    def run(self) -> None:
        try:
            self._act()
        except Exception as e:  # noqa: BLE001 - reported by the engine
            self.error = f"{type(e).__name__}: {e}"
        finally:
            self.done.set()

    def _act(self) -> None:
        jobs = {
            "gang": (gang("gang", 2, 1), SUCCEEDS),
            "wide": (gang("wide", 3, 2), SUCCEEDS),
            "batch": (batch("batch"), SUCCEEDS),
            "wrong": (gang("wrong", 1, 1, code=1), FAILS),
            "paused": (gang("paused", 1, 1, runs_s=LONG_S), SUCCEEDS),
            "doomed": (gang("doomed", 2, 1, runs_s=FOREVER_S), IS_DELETED),
            "huge": (gang("huge", 1, 64), WAITS),
            "lender": (gang("lender", 4, 2, runs_s=LONG_S, namespace="team-b"), SUCCEEDS),
        }
        for name, (_, end) in jobs.items():
            self.ends[name] = end
        self._rest("POST", "apply/", "\n---\n".join([self._policy, *(text for text, _ in jobs.values())]))
        self.ends["posted"] = SUCCEEDS
        path = "/apis/batch/v1/namespaces/default/jobs"
        self._until(lambda: self._kube("POST", path, json.dumps(yaml.safe_load(batch("posted")))) in (201, 409))
        self._until(lambda: self._state("lender") in ("Running", "Succeeded"), 15.0)
        self.ends["claimer"] = SUCCEEDS
        self._rest("POST", "apply/", gang("claimer", 3, 2, namespace="team-a"))
        self._until(lambda: self._state("paused") in ("Running", "Succeeded"), 15.0)
        if self._do("paused", "suspend"):
            self._until(lambda: False, 1.0)
            self._do("paused", "resume")
        self._until(lambda: self._state("doomed") == "Running", 10.0)
        self._rest("POST", "delete/", gang("doomed", 2, 1, runs_s=FOREVER_S))
        while not self.stopping.wait(1.0):
            self._kube("GET", "/apis/kubeflow.org/v1/pytorchjobs", "")
            self._ask("GET", "jobs/", "")
            self._ask("GET", "clusters/", "")

    def _do(self, name: str, verb: str) -> bool:
        """False: the job was over before."""
        while not self.stopping.is_set():
            job = self._job(name)
            if job is None:
                continue
            if job["state"] in ("Succeeded", "Failed"):
                return False
            if bool(job.get("suspended")) == (verb == "suspend"):
                return True
            self._ask("POST", f"jobs/{job['id']}/{verb}/", "")
            self.stopping.wait(_AGAIN_S)
        return False

    def _state(self, name: str) -> str:
        job = self._job(name)
        return str(job["state"]) if job else ""

    def _job(self, name: str) -> dict[str, Any] | None:
        _, body = self._ask("GET", f"jobs/?search={name}", "")
        try:
            rows = json.loads(body)["results"]
        except (ValueError, KeyError):
            self.stopping.wait(_AGAIN_S)
            return None
        return next((row for row in rows if row["name"] == name), None)

    def _until(self, holds: Callable[[], bool], within_s: float = 60.0) -> None:
        deadline = time.monotonic() + within_s
        while not holds() and not self.stopping.is_set() and time.monotonic() < deadline:
            self.stopping.wait(_AGAIN_S)

    def _rest(self, method: str, path: str, text: str) -> None:
        """Until it is answered."""
        self._until(lambda: 200 <= self._ask(method, path, text)[0] < 500)

    def _ask(self, method: str, path: str, text: str) -> tuple[int, str]:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWERS_S)
        return self._exchange("rest", line, method, f"/api/v1/{path}", text, "application/yaml")

    def _kube(self, method: str, path: str, text: str) -> int:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        line = http.client.HTTPSConnection("127.0.0.1", self._kube_port, timeout=_ANSWERS_S, context=context)
        return self._exchange("kube", line, method, path, text, "application/json")[0]

    def _exchange(
        self, door: str, line: http.client.HTTPConnection, method: str, path: str, text: str, kind: str
    ) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        status, body = 0, ""
        try:
            line.request(method, path, text.encode() or None, headers)
            response = line.getresponse()
            status, body = response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as e:
            body = f"{type(e).__name__}: {e}"
        finally:
            line.close()
        shown = body[:300] if status >= 400 or not status else ""
        self.answers.append(Answer(door, f"{method} {path}", status, time.time(), shown))
        return status, body


def gang(name: str, pods: int, gpus: int, *, runs_s: int = RUNS_S, code: int = 0, namespace: str = "default") -> str:
    notes = {"convoy.dev/duration": f"{runs_s}s", **({"convoy.dev/exit-code": str(code)} if code else {})}
    container = {"name": "pytorch", "image": "example.com/train", "resources": {"limits": {GPU: gpus}}}
    template = {"metadata": {"annotations": notes}, "spec": {"containers": [container]}}
    master = {"replicas": 1, "restartPolicy": "Never", "template": template}
    replicas = {"Master": master, **({"Worker": {**master, "replicas": pods - 1}} if pods > 1 else {})}
    metadata = {"name": name, "namespace": namespace}
    head = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata}
    return str(yaml.safe_dump({**head, "spec": {"pytorchReplicaSpecs": replicas}}))


def batch(name: str) -> str:
    limits = {GPU: 1}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "example.com/train", "resources": {"limits": limits}}],
    }
    template = {"metadata": {"annotations": {"convoy.dev/duration": f"{RUNS_S}s"}}, "spec": pod}
    spec = {"parallelism": 2, "completions": 2, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return str(yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}))


def policy(purge: str, queued: bool, toleration_s: int) -> str:
    spec: dict[str, Any] = {
        "propagateDeps": True,
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "customSchedulingType": "Gang"}},
        "failover": {"application": {"decisionConditions": {"tolerationSeconds": toleration_s}, "purgeMode": purge}},
        "resourceSelectors": [
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"},
            {"apiVersion": "batch/v1", "kind": "Job"},
        ],
    }
    if queued:
        spec["suspension"] = {"scheduling": True}
    head = {"apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "ClusterPropagationPolicy"}
    return str(yaml.safe_dump({**head, "metadata": {"name": "everything"}, "spec": spec}))


def quota_tree() -> str:
    """Team a is guaranteed what team b borrows; everybody else has room for all at once."""

    def leaf(name: str, namespace: str, low: int, high: int) -> dict[str, Any]:
        return {"name": name, "min": {GPU: low}, "max": {GPU: high}, "namespaces": [namespace]}

    teams: dict[str, Any] = {"name": "teams", "min": {GPU: 10}, "max": {GPU: 10}}
    teams["children"] = [leaf("a", "team-a", 6, 10), leaf("b", "team-b", 0, 10)]
    total = {GPU: 110, "cpu": 10000, "memory": "40000Gi", "kube-queue/max-jobs": 1000, "pods": 10000}
    root = {"name": "root", "min": total, "max": total, "children": [teams, leaf("rest", "default", 100, 100)]}
    head = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    metadata = {"name": "tree", "namespace": "kube-system"}
    return str(yaml.safe_dump({**head, "metadata": metadata, "spec": {"root": root}}))
