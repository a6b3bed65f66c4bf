"""TrainingJobs (et-operator): workers are added, removed and replaced while the job runs. No I/O."""

import copy

from fleet.kube.resources import PODS, SERVICES, TRAINING_JOBS
from simulator.machinery import conditions
from simulator.machinery.objects import Object, annotations_of, name_of, phase_of
from simulator.operators.operator import Dependents, Operator, ReconcileResult, at, ended, surplus

SUSPEND = ("scheduling.x-k8s.io/suspend", "job-supervisor.kube-ai.io/job-suspended")


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
        workers = [f"{name_of(job)}-worker-{i}" for i in range(int(roles["worker"].get("replicas") or 1))]
        launcher = f"{name_of(job)}-launcher"
        step = ReconcileResult(status, remove=surplus(dependents, [*workers, launcher]))
        for index, name in enumerate(workers):
            self._make(step, job, name, "worker", index, roles["worker"])
        phases = dependents.phases(workers)
        step.remove += [pod for pod in dependents.pods if name_of(pod) in workers and phase_of(pod) == "Failed"]
        status |= {"targetWorkers": len(workers), "currentWorkers": phases.count("Running")}
        self._set_condition(status, "WorkersCreated", "all workers are made", now)
        [launcher_phase] = dependents.phases([launcher])
        if launcher_phase or all(phase == "Running" for phase in phases):
            self._set_condition(status, "WorkersReady", "all workers are ready", now)
            self._make(step, job, launcher, "launcher", 0, roles["launcher"])
        self._judge(job, status, launcher_phase, phases, now)
        if status["phase"] == "Restarting":
            step.make, step.remove = [], dependents.pods
        return step

    def _judge(self, job: Object, status: Object, launcher_phase: str, phases: list[str], now: float) -> None:
        restarts, spec = int(status.get("restartCount") or 0), job["spec"]
        limit = spec.get("backoffLimit")
        if (
            launcher_phase == "Failed"
            and spec.get("restartPolicy") == "OnFailure"
            and restarts < (6 if limit is None else limit)
        ):
            status |= {"phase": "Restarting", "restartCount": restarts + 1}
        elif launcher_phase in ("Succeeded", "Failed"):
            status["phase"] = launcher_phase
            at(status, "completionTime", now)
        elif launcher_phase == "Running":
            status["phase"] = "Running" if all(phase == "Running" for phase in phases) else "Scaling"
        else:
            status["phase"] = "Created"
        self._set_condition(status, status["phase"], f"the job is {status['phase']}", now)

    def _set_condition(self, status: Object, kind: str, message: str, now: float) -> None:
        conditions.put(status, kind, true=True, reason=kind, message=message, now=now)

    def _make(self, step: ReconcileResult, job: Object, name: str, role: str, index: int, spec: Object) -> None:
        labels = {
            "group-name": self.resource.group,
            "training-job-name": name_of(job),
            "training-job-role": role,
            "replica-index": str(index),
        }
        restart = str(spec.get("restartPolicy") or "Never")
        step.make.append((PODS, self.pod(job, name, spec["template"], labels, restart)))
        service = {"apiVersion": "v1", "kind": "Service", "metadata": self.owned(job, name, labels)}
        ports = [{"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"}]
        step.make.append((SERVICES, {**service, "spec": {"clusterIP": "None", "selector": labels, "ports": ports}}))
