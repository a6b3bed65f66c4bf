"""TrainingJobs, as the public et-operator (96806fb) runs them: workers, then the launcher, and one scaler at a time. No I/O.

``replicas`` counts when the job starts or starts over. While it runs, its ``targetWorkers`` change by ScaleIn and ScaleOut
alone. A worker that is lost is replaced by one of a new index where its restartPolicy says so.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass

from fleet.kube.resources import PODS, SCALE_INS, SCALE_OUTS, SERVICES, TRAINING_JOBS
from simulator.machinery import conditions
from simulator.machinery.clock import parse_stamp
from simulator.machinery.objects import Object, annotations_of, exit_code, is_leaving, labels_of, name_of, phase_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult, at, ended

SUSPEND = ("scheduling.x-k8s.io/suspend", "job-supervisor.kube-ai.io/job-suspended")
ADDED_BY = "scaleout-name"
_RESTARTS = {"Always": ("Failed", "Succeeded"), "OnFailure": ("Failed",)}
_SCALED = ("ScaleSucceeded", "ScaleFailed")
_SCALED_WITHIN_S = 60


class Horovod(Operator):
    """Starts the launcher once all workers are ready. The job ends with its launcher. A suspended job cannot be resumed."""

    resource = TRAINING_JOBS

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        status = copy.deepcopy(job.get("status") or {})
        phase = status.get("phase") or "Created"
        if phase in ("Succeeded", "Failed"):
            return ReconcileResult(status, remove=ended(job, dependents))
        if phase == "Suspended" or any(annotations_of(job).get(note) == "true" for note in SUSPEND):
            return ReconcileResult({**status, "phase": "Suspended"}, remove=dependents.pods)
        if phase == "Restarting" and dependents.pods:
            return ReconcileResult(status, remove=dependents.pods)
        at(status, "startTime", now)
        return self._run(job, dependents, status, now)

    def _run(self, job: Object, dependents: Dependents, status: Object, now: float) -> ReconcileResult:
        roles = {name.lower(): spec for name, spec in job["spec"]["etReplicaSpecs"].items()}
        launcher, step = f"{name_of(job)}-launcher", ReconcileResult(status)
        turn = _Turn(step, job, dependents, roles["worker"], now)
        if status.get("targetWorkers"):
            self._replace(turn)
        else:
            replicas = roles["worker"].get("replicas")
            status["targetWorkers"] = [_worker(job, index) for index in range(1 if replicas is None else int(replicas))]
            self._make_workers(turn, status["targetWorkers"])
            self._set_condition(status, "WorkersCreated", "all workers are made", now)
        running = [name_of(pod) for pod in dependents.pods if _is_worker(pod) and phase_of(pod) == "Running"]
        status["currentWorkers"] = sorted(running, key=_index)
        [launcher_phase] = dependents.phases([launcher])
        if not launcher_phase and len(running) >= len(status["targetWorkers"]):
            self._set_condition(status, "WorkersReady", "all workers are ready", now)
            self._make(turn, launcher, "launcher", 0, roles["launcher"])
        if launcher_phase == "Running" and status.get("phase") in ("Running", "Scaling"):
            self._scale(turn)
        self._judge(job, status, launcher_phase, now)
        if status["phase"] == "Restarting":
            step.make, step.remove = [], dependents.pods
        return step

    def _judge(self, job: Object, status: Object, launcher_phase: str, now: float) -> None:
        restarts, spec = int(status.get("restartCount") or 0), job["spec"]
        limit = spec.get("backoffLimit")
        if (
            launcher_phase == "Failed"
            and spec.get("restartPolicy") == "OnFailure"
            and restarts < (6 if limit is None else limit)
        ):
            again = {"phase": "Restarting", "restartCount": restarts + 1, "currentScaler": ""}
            status |= {**again, "targetWorkers": [], "currentWorkers": []}
        elif launcher_phase in ("Succeeded", "Failed"):
            status["phase"] = launcher_phase
            at(status, "completionTime", now)
        elif launcher_phase == "Running":
            status["phase"] = "Scaling" if status.get("currentScaler") else "Running"
        else:
            status["phase"] = "Created"
        self._set_condition(status, status["phase"], f"the job is {status['phase']}", now)

    def _replace(self, turn: "_Turn") -> None:
        """Workers that ended or were deleted get a successor of a new index, if they may restart."""
        status, pods = turn.step.status, {name_of(pod): pod for pod in turn.dependents.pods}
        targets: list[str] = status["targetWorkers"]
        lost = [
            name for name in targets if _may_restart(pods.get(name), str(turn.spec.get("restartPolicy") or "Never"))
        ]
        heirs = _next(turn.job, targets, len(lost))
        status["targetWorkers"] = [name for name in targets if name not in lost] + heirs
        self._make_workers(turn, heirs)

    def _scale(self, turn: "_Turn") -> None:
        """Follows the scaler that was made last of those that are not over."""
        status, job = turn.step.status, turn.job
        open_ones = [each for each in turn.dependents.scalers if not is_over(each) and not is_leaving(each)]
        status["currentScaler"] = ""
        if not open_ones:
            return
        scaler = max(open_ones, key=lambda each: each["metadata"]["creationTimestamp"])
        own = copy.deepcopy(scaler.get("status") or {})
        own["phase"] = "Scaling"
        conditions.put(own, "Scaling", true=True, reason="ScalingStart", message="the job is scaling", now=turn.now)
        is_in = scaler["kind"] == SCALE_INS.kind
        outcome = self._scale_in(turn, scaler, own) if is_in else self._scale_out(turn, scaler, own)
        if outcome:
            own["phase"] = outcome
            conditions.put(own, outcome, true=True, reason=outcome, message=f"{scaler['kind']} is over", now=turn.now)
            self._set_condition(status, outcome, f"{scaler['kind']} {name_of(scaler)}", turn.now)
        else:
            status["currentScaler"] = f"{scaler['kind']}:{job['metadata']['namespace']}/{name_of(scaler)}"
        turn.step.statuses.append((SCALE_INS if is_in else SCALE_OUTS, scaler, own))

    def _scale_in(self, turn: "_Turn", scaler: Object, own: Object) -> str:
        """How it ended; empty while the pods are still there."""
        wanted, status = (scaler.get("spec") or {}).get("toDelete") or {}, turn.step.status
        pods = {name_of(pod): pod for pod in turn.dependents.pods if _is_worker(pod)}
        named, count = wanted.get("podNames"), int(wanted.get("count") or 0)
        if named is None and not own.get("toDeletePods") and not 0 < count < len(pods):
            return "ScaleFailed"
        if not own.get("toDeletePods"):
            last = sorted(pods, key=_index)[-count:]
            own["toDeletePods"] = last if named is None else [name for name in pods if name in named]
        leaving = own["toDeletePods"]
        turn.step.remove += [pods[name] for name in leaving if name in pods]
        if any(name in pods for name in leaving):
            return ""
        for workers in ("targetWorkers", "currentWorkers"):
            status[workers] = [name for name in status[workers] if name not in leaving]
        return "ScaleSucceeded"

    def _scale_out(self, turn: "_Turn", scaler: Object, own: Object) -> str:
        """How it ended; empty while the pods do not all run yet, and have time to."""
        spec, status = scaler.get("spec") or {}, turn.step.status
        count = int((spec.get("toAdd") or {}).get("count") or 0)
        if count <= 0:
            return "ScaleFailed"
        own["addPods"] = added = own.get("addPods") or _next(turn.job, status["targetWorkers"], count)
        started = next(each for each in own["conditions"] if each["type"] == "Scaling")["lastTransitionTime"]
        if all(phase == "Running" for phase in turn.dependents.phases(added)):
            status["targetWorkers"] = [*status["targetWorkers"], *added]
            return "ScaleSucceeded"
        if turn.now > parse_stamp(started) + (spec.get("timeout") or _SCALED_WITHIN_S):
            turn.step.remove += [pod for pod in turn.dependents.pods if name_of(pod) in added]
            return "ScaleFailed"
        self._make_workers(turn, added, {ADDED_BY: name_of(scaler)})
        turn.step.again_s = 1.0
        return ""

    def _set_condition(self, status: Object, kind: str, message: str, now: float) -> None:
        conditions.put(status, kind, true=True, reason=kind, message=message, now=now)

    def _make_workers(self, turn: "_Turn", names: Iterable[str], marks: dict[str, str] | None = None) -> None:
        for name in names:
            self._make(turn, name, "worker", _index(name), turn.spec, marks)

    def _make(
        self, turn: "_Turn", name: str, role: str, index: int, spec: Object, marks: dict[str, str] | None = None
    ) -> None:
        labels = {
            "group-name": self.resource.group,
            "training-job-name": name_of(turn.job),
            "training-job-role": role,
            "replica-index": str(index),
        }
        pod = self.pod(turn.job, name, spec["template"], {**labels, **(marks or {})}, "Never")
        service = {"apiVersion": "v1", "kind": "Service", "metadata": self.owned(turn.job, name, labels)}
        ports = [{"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"}]
        body = {**service, "spec": {"clusterIP": "None", "selector": labels, "ports": ports}}
        turn.step.make += [(PODS, pod), (SERVICES, body)]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One step of a job: what it does, and what it goes by."""

    step: ReconcileResult
    job: Object
    dependents: Dependents
    spec: Object
    """Of the workers."""
    now: float


def is_over(scaler: Object) -> bool:
    return any(conditions.has(scaler.get("status") or {}, each) for each in _SCALED)


def _worker(job: Object, index: int) -> str:
    return f"{name_of(job)}-worker-{index}"


def _index(name: str) -> int:
    return int(name.rpartition("-")[2])


def _next(job: Object, targets: list[str], count: int) -> list[str]:
    """The names of as many new workers: their indexes go on from the highest."""
    first = max((_index(name) for name in targets), default=-1) + 1
    return [_worker(job, index) for index in range(first, first + count)]


def _is_worker(pod: Object) -> bool:
    return labels_of(pod).get("training-job-role") == "worker" and not is_leaving(pod)


def _may_restart(pod: Object | None, policy: str) -> bool:
    """Whether a target that has ended or is missing gets a successor."""
    if pod is None:
        return policy == "Always"
    if policy == "ExitCode":
        return phase_of(pod) == "Failed" and 128 < (exit_code(pod) or 0) < 255
    return phase_of(pod) in _RESTARTS.get(policy, ())
