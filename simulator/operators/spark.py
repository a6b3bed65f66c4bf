"""SparkApplications: a driver, executors once it runs, and retries by the restart policy. No I/O."""

import copy
import math
import re

from fleet.kube.resources import PODS, SPARK_APPLICATIONS
from simulator.machinery.clock import stamp
from simulator.machinery.objects import Object, exit_code, name_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult, random_suffix

_MEMORY = re.compile(r"^(\d+)([kmgt]?)i?b?$", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
OVER = ("COMPLETED", "FAILED")


class Spark(Operator):
    resource = SPARK_APPLICATIONS

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        status = copy.deepcopy(job.get("status") or {})
        state = (status.get("applicationState") or {}).get("state") or ""
        driver = f"{name_of(job)}-driver"
        executors = [pod for pod in dependents.pods if name_of(pod) != driver]
        if state in OVER:
            return ReconcileResult(status, remove=executors)
        if job["spec"].get("suspend"):
            return self._enter(status, "SUSPENDING" if dependents.pods else "SUSPENDED", remove=dependents.pods)
        if state == "PENDING_RERUN" and dependents.pods:
            return ReconcileResult(status, remove=dependents.pods)
        if state in ("", "PENDING_RERUN", "SUSPENDING", "SUSPENDED"):
            status["executionAttempts"] = int(status.get("executionAttempts") or 0) + 1
            status |= {"submissionAttempts": 1, "lastSubmissionAttemptTime": stamp(now)}
        return self._run(job, dependents, status, now)

    def _run(self, job: Object, dependents: Dependents, status: Object, now: float) -> ReconcileResult:
        driver = self._pod(job, f"{name_of(job)}-driver", "driver", {"spark-role": "driver"})
        [phase] = dependents.phases([name_of(driver)])
        status["driverInfo"] = {"podName": name_of(driver)}
        if phase == "Running":
            step = self._enter(status, "RUNNING", "")
            step.make = [(PODS, driver), *((PODS, executor) for executor in self._executors(job))]
            names = [name_of(body) for _, body in step.make[1:]]
            status["executorState"] = dict(
                zip(names, [phase.upper() or "PENDING" for phase in dependents.phases(names)], strict=True)
            )
            return step
        if phase in ("Succeeded", "Failed"):
            return self._end(job, dependents, status, phase, now)
        step = self._enter(status, "SUBMITTED", "")
        step.make = [(PODS, driver)]
        return step

    def _end(self, job: Object, dependents: Dependents, status: Object, phase: str, now: float) -> ReconcileResult:
        policy = job["spec"].get("restartPolicy") or {}
        tries = int(status["executionAttempts"])
        again = policy.get("type") == "Always" or (
            policy.get("type") == "OnFailure"
            and phase == "Failed"
            and tries <= int(policy.get("onFailureRetries") or 0)
        )
        if again:
            return self._enter(status, "PENDING_RERUN", "", remove=dependents.pods)
        status["terminationTime"] = stamp(now)
        code = next((exit_code(pod) for pod in dependents.pods if name_of(pod).endswith("-driver")), None)
        message = f"driver container failed with ExitCode: {code}" if phase == "Failed" else ""
        return self._enter(status, "COMPLETED" if phase == "Succeeded" else "FAILED", message)

    def _enter(
        self, status: Object, state: str, message: str = "", remove: list[Object] | None = None
    ) -> ReconcileResult:
        status["applicationState"] = {"state": state, **({"errorMessage": message} if message else {})}
        return ReconcileResult(status, remove=remove or [])

    def _executors(self, job: Object) -> list[Object]:
        spec = job["spec"]
        instances, dynamic = spec["executor"].get("instances"), spec.get("dynamicAllocation") or {}
        count = int(1 if instances is None else instances)
        if dynamic.get("enabled"):
            count = int(dynamic.get("initialExecutors") or dynamic.get("minExecutors") or 1)
        stem = f"{name_of(job)}-{random_suffix(job)}-exec"
        return [
            self._pod(job, f"{stem}-{n}", "executor", {"spark-role": "executor", "spark-exec-id": str(n)})
            for n in range(1, count + 1)
        ]

    def _pod(self, job: Object, name: str, role: str, labels: dict[str, str]) -> Object:
        spec = job["spec"]
        body = spec[role]
        requests = {"cpu": str(body.get("coreRequest") or body.get("cores") or 1), "memory": str(_memory(spec, body))}
        limits = {"memory": requests["memory"]}
        if gpu := body.get("gpu"):
            limits[gpu["name"]] = str(gpu["quantity"])
        container = {
            "name": f"spark-kubernetes-{role}",
            "image": body.get("image") or spec.get("image"),
            "env": body.get("env") or [],
            "resources": {"requests": requests, "limits": limits},
        }
        meta = {"labels": body.get("labels") or {}, "annotations": body.get("annotations") or {}}
        pod = {
            "containers": [container],
            **({"schedulerName": body["schedulerName"]} if "schedulerName" in body else {}),
        }
        marks = {**labels, "sparkoperator.k8s.io/app-name": name_of(job)}
        return self.pod(job, name, {"metadata": meta, "spec": pod}, marks)


def _memory(spec: Object, body: Object) -> int:
    """The memory request in bytes: the heap plus Spark's overhead."""
    heap = _bytes(str(body.get("memory") or "1g"))
    if body.get("memoryOverhead"):
        return heap + _bytes(str(body["memoryOverhead"]))
    factor = float(spec.get("memoryOverheadFactor") or (0.1 if spec.get("type") in ("Java", "Scala") else 0.4))
    return heap + max(384 * 2**20, math.ceil(heap * factor))


def _bytes(text: str) -> int:
    match = _MEMORY.match(text)
    if not match:
        raise ValueError(f"not an amount of memory: {text!r}")
    return int(match[1]) << 10 * _POWERS[match[2].lower()]
