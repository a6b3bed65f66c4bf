"""ElasticJobs, as the operator of DLRover 0.6.1 runs them: it creates a master, whose state determines the phase. No I/O.

The operator neither creates nor removes workers; the master does. A master that is a real process (``convoy.dev/run``) does so
through the API; for a simulated one, `dlrover_master` decides. ``spec.suspend`` stops nothing that runs, and the phase follows
it only when the master pod changes: a running job stays Running, as upstream.
"""

import copy

from fleet.kube.resources import ELASTIC_JOBS, PODS, SERVICES, Resource
from simulator import images
from simulator.machinery import conditions
from simulator.machinery.objects import Object, annotations_of, exit_code, is_leaving, labels_of, name_of, phase_of
from simulator.node import lifecycle
from simulator.operators import dlrover_master
from simulator.operators.dlrover_master import MASTER, PREFIX
from simulator.operators.operator import Dependents, Operator, ReconcileResult, at

_ARGUMENTS = (
    "pending_timeout",
    "pending_fail_strategy",
    "service_type",
    "pre_check_ops",
    "pre_check_bypass",
    "training_elastic_mode",
    "enable_dashboard",
    "dashboard_port",
)
_ASKS = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi"}
_COUNTED = {"pending": "Pending", "active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
_OVER = ("Succeeded", "Failed")


class DlRover(Operator):
    resource = ELASTIC_JOBS

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        whole = copy.deepcopy(job.get("status") or {})
        status, before = whole.setdefault("status", {}), str(whole.get("phase") or "")
        if before in _OVER:
            return ReconcileResult(whole, annotate=dlrover_master.give_up(dependents.pods))
        masters = sorted((pod for pod in dependents.pods if dlrover_master.role_of(pod) == MASTER), key=_index)
        failures = _failures(status, masters)
        status["replicaStatuses"] = _counts(dependents.pods, failures)
        step = ReconcileResult(whole)
        if not before:
            suspended = bool(job["spec"].get("suspend"))
            phase = "Suspended" if suspended else "Created"
            self._enter(whole, phase, "", f"ElasticJob {name_of(job)} is {phase.lower()}.", now)
            at(status, "startTime", now)
            step.make = self._master(job, 0)
            return step
        self._follow(job, whole, masters, failures, now)
        if whole["phase"] in ("Pending", "Running") and not _alive(masters):
            step.make = self._master(job, failures)
        elif masters and _is_simulated(masters[-1]) and phase_of(masters[-1]) == "Running":
            self._play_master(job, dependents, masters[-1], step)
        return step

    def _follow(self, job: Object, whole: Object, masters: list[Object], failures: int, now: float) -> None:
        """Sets the phase by the newest master pod."""
        suspended, phase = bool(job["spec"].get("suspend")), phase_of(masters[-1]) if masters else ""
        allowed = int(_replicas(job).get(MASTER, {}).get("restartCount") or 0)
        if whole["phase"] == "Suspended" and not suspended:
            self._enter(whole, "Running", "JobRunning", "ElasticJob is unsuspended.", now)
        if failures > allowed:
            words = f"The job master failover count {failures} is beyond the restart count {allowed}."
            self._enter(whole, "Failed", "", words, now)
        elif phase == "Failed" and exit_code(masters[-1]) == 1:
            self._enter(whole, "Failed", "", f"The job master {name_of(masters[-1])} failed with exitcode=1.", now)
        elif phase == "Failed":
            self._enter(whole, "Running", "JobRestarting", "The job master is failover.", now)
        elif phase == "Succeeded":
            self._enter(whole, "Succeeded", "", "The job master is succeeded.", now)
        elif phase == "Running" and suspended and whole["phase"] != "Running":
            self._enter(whole, "Suspended", "", "The job master is suspended.", now)
        elif phase == "Running" and not suspended:
            self._enter(whole, "Running", "JobRunning", "The job master is running.", now)
        elif phase == "Pending" and whole["phase"] == "Created":
            whole["phase"] = "Pending"

    def _play_master(self, job: Object, dependents: Dependents, master: Object, step: ReconcileResult) -> None:
        decision = dlrover_master.decide(job, dependents.pods, master)
        if decision.memory:
            step.annotate.append((master, decision.memory))
        for role, rank, number, relaunches in decision.launches:
            step.make.append((PODS, dlrover_master.pod(job, role, rank, number, relaunches)))
            step.make.append((SERVICES, dlrover_master.service(job, role, rank)))
        if decision.exit_code is not None:
            step.annotate.append((master, {lifecycle.END: f"{decision.exit_code} {decision.reason}"}))

    def _master(self, job: Object, number: int) -> list[tuple[Resource, Object]]:
        name, spec = f"elasticjob-{name_of(job)}-{MASTER}", _replicas(job).get(MASTER) or {}
        template = copy.deepcopy(spec.get("template") or _default_master(job))
        address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
        container = template["spec"]["containers"][0]
        container["env"] = [*(container.get("env") or []), address]
        meta = {"app.kubernetes.io/name": "elasticjob", f"{PREFIX}name": name_of(job), f"{PREFIX}replica-type": MASTER}
        labels = {**meta, **labels_of(job), f"{PREFIX}replica-index": str(number)}
        pod = self.pod(job, f"{name}-{number}", template, labels, template["spec"].get("restartPolicy") or "Always")
        notes = {key: value for key, value in annotations_of(job).items() if not key.startswith("convoy.dev/")}
        pod["metadata"]["annotations"] = {lifecycle.DURATION: "8760h", **pod["metadata"]["annotations"], **notes}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": self.owned(job, name, meta)}
        return [(PODS, pod), (SERVICES, {**service, "spec": {"selector": meta, "ports": [{"port": 50001}]}})]

    def _enter(self, whole: Object, phase: str, reason: str, words: str, now: float) -> None:
        whole["phase"] = phase
        conditions.put(whole["status"], phase, true=True, reason=reason or f"Job{phase}", message=words, now=now)
        if phase in _OVER:
            conditions.deny(whole["status"], "Running", reason="JobRunning", message="The job is over.", now=now)


def _replicas(job: Object) -> dict[str, Object]:
    return {name.lower(): spec for name, spec in job["spec"]["replicaSpecs"].items()}


def _index(pod: Object) -> int:
    return int(labels_of(pod).get(f"{PREFIX}replica-index") or 0)


def _alive(masters: list[Object]) -> bool:
    return any(phase_of(pod) in ("Pending", "Running") and not is_leaving(pod) for pod in masters)


def _is_simulated(pod: Object) -> bool:
    return annotations_of(pod).get(images.RUN) != "process"


def _failures(status: Object, masters: list[Object]) -> int:
    """How many masters have failed so far. A master that was deleted while it was alive counts as failed."""
    before: Object = (status.get("replicaStatuses") or {}).get(MASTER) or {}
    was_deleted = not masters and bool(before.get("active") or before.get("pending"))
    return max(int(before.get("failed") or 0) + was_deleted, sum(phase_of(pod) == "Failed" for pod in masters))


def _counts(pods: list[Object], failures: int) -> Object:
    by_role: dict[str, list[str]] = {MASTER: []}
    for pod in pods:
        by_role.setdefault(dlrover_master.role_of(pod), []).append(phase_of(pod))
    counts = {
        role: {"initial": 0, **{word: phases.count(phase) for word, phase in _COUNTED.items()}}
        for role, phases in by_role.items()
        if role
    }
    counts[MASTER]["failed"] = failures
    return counts


def _default_master(job: Object) -> Object:
    """The operator's default master template, for a job without one."""
    where = f"--namespace {job['metadata'].get('namespace')} --job_name {name_of(job)} --port 50001"
    notes = annotations_of(job)
    arguments = "".join(f" --{name} {notes[name]}" for name in _ARGUMENTS if name in notes)
    container = {
        "name": "main",
        "image": "easydl/dlrover-master:test",
        "imagePullPolicy": "Always",
        "command": ["/bin/bash", "-c", f"python -m dlrover.python.master.main --platform pyk8s {where}{arguments}"],
        "resources": {"requests": dict(_ASKS), "limits": dict(_ASKS)},
    }
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}
