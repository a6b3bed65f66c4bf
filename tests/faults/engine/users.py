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
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

GPU = "nvidia.com/gpu"
RUNS_S = 40
"""Simulated seconds that a program runs: two real ones."""
SHORT_S = 6
FOREVER_S = 36000
NOTICED = "noticed"
"""A job whose member asks it to stop, as for a node that is taken back: it is queued again."""
NIGHT = "shift"
"""A job whose queue has nothing until its window opens."""
LASTING = ("paused", "lender", "elastic", NOTICED)
"""Jobs that run until the users have done what they do to them, however slow the machine is: then their programs end."""
CAREFUL = frozenset({"paused"})
"""Jobs whose policy waits for a cluster that does not answer, and preserves their state."""
DIVIDED = frozenset({"spread"})
DIVIDED_PODS = 4
ELASTIC_PODS = (3, 2, 4)
"""Of the elastic job: at first, once it was made smaller, once it was made larger."""
STATE = "example.com/began"
SUCCEEDS, FAILS, WAITS, IS_DELETED = "Succeeded", "Failed", "Queued", ""
_AGAIN_S = 0.3
_ANSWERS_S = 8.0
_RUNS_S = 25.0
"""Longest wait for a job to run, before the users go on."""
OPENS_S = 5.0
_OPEN = timedelta(hours=12)
"""Longer than any step of a clock."""


@dataclass(frozen=True, slots=True)
class Answer:
    door: str
    request: str
    status: int
    """0: there was no answer."""
    at: float
    body: str = ""


class Users(threading.Thread):
    def __init__(
        self,
        port: int,
        kube_port: int,
        token: str,
        purge: str,
        queued: bool,
        toleration_s: int,
        *,
        slow: float = 1.0,
    ) -> None:
        """``slow``: how many times as long they wait for what a busy machine does later."""
        super().__init__(name="users", daemon=True)
        self._port, self._kube_port, self._token, self._slow = port, kube_port, token, slow
        self._policies = policies(purge, queued, toleration_s)
        self.answers: list[Answer] = []
        self.ends: dict[str, str] = {}
        self.stopping = threading.Event()
        self.done = threading.Event()
        self.submitted = threading.Event()
        """All jobs are."""
        self.opens_at = 0.0
        """When the window of `NIGHT` opens; 0: it is not known yet."""
        self.notice_due = threading.Event()
        """The member of `NOTICED` is to ask it to stop."""
        self.noticed = threading.Event()
        """It has."""
        self.acted = threading.Event()
        """Nothing more is done to jobs."""
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
            "paused": (gang("paused", 1, 1, runs_s=FOREVER_S, namespace="careful"), SUCCEEDS),
            "looping": (gang("looping", 1, 1, code=1, runs_s=SHORT_S, namespace="strict", restart="OnFailure"), FAILS),
            "spread": (batch("spread", pods=DIVIDED_PODS, namespace="spread"), SUCCEEDS),
            "elastic": (elastic("elastic"), SUCCEEDS),
            NOTICED: (gang(NOTICED, 2, 1, runs_s=FOREVER_S), SUCCEEDS),
            NIGHT: (gang(NIGHT, 1, 1, namespace="night"), SUCCEEDS),
            "doomed": (gang("doomed", 2, 1, runs_s=FOREVER_S), IS_DELETED),
            "huge": (gang("huge", 1, 64), WAITS),
            "lender": (gang("lender", 4, 2, runs_s=FOREVER_S, namespace="team-b"), SUCCEEDS),
        }
        for name, (_, end) in jobs.items():
            self.ends[name] = end
        self._rest("POST", "apply/", "\n---\n".join([*self._policies, *(text for text, _ in jobs.values())]))
        self._open_window()
        self.ends["posted"] = SUCCEEDS
        path = "/apis/batch/v1/namespaces/default/jobs"
        self._until(lambda: self._kube("POST", path, json.dumps(yaml.safe_load(batch("posted")))) in (201, 409))
        self._until(lambda: self._state("lender") in ("Running", "Succeeded"), _RUNS_S)
        self.ends["claimer"] = SUCCEEDS
        self._rest("POST", "apply/", gang("claimer", 3, 2, namespace="team-a"))
        self.submitted.set()
        self._until(lambda: self._state("paused") in ("Running", "Succeeded"), _RUNS_S)
        if self._do("paused", "suspend"):
            self._until(lambda: False, 1.0)
            self._do("paused", "resume")
            # Programs end once all is done: the next attempt is to be there by then, and no copy of the former to end for it.
            self._until(lambda: self._state("paused") in ("Running", "Succeeded"), _RUNS_S)
        self._resize("elastic", 1)
        self.notice_due.set()
        self._until(lambda: self._state("doomed") == "Running", _RUNS_S)
        self._rest("POST", "delete/", gang("doomed", 2, 1, runs_s=FOREVER_S))
        self._resize("elastic", 3)
        # What has to go on elsewhere, or larger, is to be there before its program ends.
        self._until(self._all_have_come, _RUNS_S)
        self.acted.set()
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

    def _resize(self, name: str, replicas: int) -> None:
        """Once, while it runs; a job that does not run any more refuses."""
        self._until(lambda: self._state(name) in ("Running", "Succeeded"), _RUNS_S)
        job = self._job(name)
        if job is not None:
            self._ask("POST", f"jobs/{job['id']}/resize/", json.dumps({"replicas": replicas}), "application/json")

    def _open_window(self) -> None:
        """The quota tree is applied again, with a window that opens once the jobs have begun."""
        begin = datetime.now(UTC) + timedelta(seconds=OPENS_S * self._slow)
        self.opens_at = begin.timestamp()
        window = {"from": begin.isoformat(), "to": (begin + _OPEN).isoformat(), "max": {GPU: 2}}
        self._rest("POST", "apply/", quota_tree(window))

    def _all_have_come(self) -> bool:
        is_larger = self._has_come("elastic", pods=ELASTIC_PODS[-1])
        return is_larger and self.noticed.is_set() and self._has_come(NOTICED, attempt=2)

    def _has_come(self, name: str, *, attempt: int = 1, pods: int = 0) -> bool:
        job = self._job(name)
        if job is None or job["state"] in ("Succeeded", "Failed"):
            return job is not None
        size = sum(role["replicas"] for role in job["roles"])
        return job["state"] == "Running" and job["attempt"] >= attempt and size >= pods

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
        deadline = time.monotonic() + within_s * self._slow
        while not holds() and not self.stopping.is_set() and time.monotonic() < deadline:
            self.stopping.wait(_AGAIN_S)

    def _rest(self, method: str, path: str, text: str) -> None:
        """Until it is answered."""
        self._until(lambda: 200 <= self._ask(method, path, text)[0] < 500)

    def _ask(self, method: str, path: str, text: str, kind: str = "application/yaml") -> tuple[int, str]:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWERS_S)
        return self._exchange("rest", line, method, f"/api/v1/{path}", text, kind)

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


def gang(
    name: str,
    pods: int,
    gpus: int,
    *,
    runs_s: int = RUNS_S,
    code: int = 0,
    namespace: str = "default",
    restart: str = "Never",
) -> str:
    notes = {"convoy.dev/duration": f"{runs_s}s", **({"convoy.dev/exit-code": str(code)} if code else {})}
    container = {"name": "pytorch", "image": "example.com/train", "resources": {"limits": {GPU: gpus}}}
    template = {"metadata": {"annotations": notes}, "spec": {"containers": [container]}}
    master = {"replicas": 1, "restartPolicy": restart, "template": template}
    replicas = {"Master": master, **({"Worker": {**master, "replicas": pods - 1}} if pods > 1 else {})}
    metadata = {"name": name, "namespace": namespace}
    head = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata}
    return str(yaml.safe_dump({**head, "spec": {"pytorchReplicaSpecs": replicas}}))


def elastic(name: str) -> str:
    """From one to three workers beside the master."""
    body = yaml.safe_load(gang(name, 3, 1, runs_s=FOREVER_S))
    body["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    body["spec"]["runPolicy"] = {"cleanPodPolicy": "Running"}
    return str(yaml.safe_dump(body))


def batch(name: str, *, pods: int = 2, namespace: str = "default") -> str:
    limits = {GPU: 1}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "example.com/train", "resources": {"limits": limits}}],
    }
    template = {"metadata": {"annotations": {"convoy.dev/duration": f"{RUNS_S}s"}}, "spec": pod}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    metadata = {"name": name, "namespace": namespace}
    return str(yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}))


def policies(purge: str, queued: bool, toleration_s: int) -> list[str]:
    """One for all jobs, and those of three namespaces: that of careful jobs, that of divided ones, that of a single attempt."""
    spec: dict[str, Any] = {
        "propagateDeps": True,
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "customSchedulingType": "Gang"}},
        "failover": {"application": {"decisionConditions": {"tolerationSeconds": toleration_s}, "purgeMode": purge}},
        "resourceSelectors": [
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"},
            {"apiVersion": "batch/v1", "kind": "Job"},
        ],
        **({"suspension": {"scheduling": True}} if queued else {}),
    }
    rule = {"aliasLabelName": STATE, "jsonPath": "{.startTime}", "env": "BEGAN"}
    keeps = {"failover": {"application": {**spec["failover"]["application"], "statePreservation": {"rules": [rule]}}}}
    weights = {"replicaDivisionPreference": "Weighted", "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    divides = {"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", **weights}}}
    return [
        _policy("everything", "", spec),
        _policy("careful", "careful", spec | keeps, **{"convoy.dev/unreachable-cluster": "Wait"}),
        _policy("spread", "spread", spec | divides),
        _policy("strict", "strict", spec, **{"convoy.dev/max-attempts": "1"}),
    ]


def _policy(name: str, namespace: str, spec: dict[str, Any], **annotations: str) -> str:
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "annotations": annotations}
    head = {"apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": kind}
    return str(yaml.safe_dump({**head, "metadata": metadata, "spec": spec}))


def quota_tree(window: dict[str, Any] | None = None) -> str:
    """Team a is guaranteed what team b borrows; the night has only its window; everybody else has room for all at once."""

    def leaf(name: str, low: int, high: int, *namespaces: str) -> dict[str, Any]:
        return {"name": name, "min": {GPU: low}, "max": {GPU: high}, "namespaces": list(namespaces)}

    teams: dict[str, Any] = {"name": "teams", "min": {GPU: 10}, "max": {GPU: 10}}
    teams["children"] = [leaf("a", 6, 10, "team-a"), leaf("b", 0, 10, "team-b")]
    night = leaf("night", 0, 0, "night")
    if window is not None:
        night["attributes"] = {"windows": json.dumps([window])}
    total = {GPU: 110, "cpu": 10000, "memory": "40000Gi", "kube-queue/max-jobs": 1000, "pods": 10000}
    root = {
        "name": "root",
        "min": total,
        "max": total,
        "children": [teams, leaf("rest", 100, 100, "default", "careful", "spread", "strict"), night],
    }
    head = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    metadata = {"name": "tree", "namespace": "kube-system"}
    return str(yaml.safe_dump({**head, "metadata": metadata, "spec": {"root": root}}))
