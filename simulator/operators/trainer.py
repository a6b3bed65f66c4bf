"""Kubeflow Trainer 2: creates a JobSet for each TrainJob from the runtime that it names, and copies the JobSet's result.

The JobSet operator and the Job controller do the rest. As in the real controller, there is no condition for running, and the
runtime is read only once: of an existing JobSet only ``suspend`` is changed.
"""

import contextlib
import copy
from typing import Any

from fleet.kube.resources import CLUSTER_TRAINING_RUNTIMES, JOB_SETS, TRAIN_JOBS, TRAINING_RUNTIMES
from fleet.kube.writes import patches
from fleet.member.client import Object
from fleet.member.errors import MemberExists, MemberMissing
from simulator.machinery.clock import parse_stamp
from simulator.machinery.conditions import deny, difference, has, put
from simulator.machinery.controller import Cluster, Controller
from simulator.machinery.objects import (
    condition,
    controller_of,
    is_leaving,
    is_true,
    key_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)

NEEDED = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOB_SETS)
GATHER_S = 0.02
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
PORT = "29500"
_OURS = ("", "trainer.kubeflow.org/trainjob-controller")
_INDEX = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


class TrainerController(Controller):
    """Keys are ``namespace/name`` of TrainJobs."""

    name = "trainer"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._jobs, self._runtimes, self._cluster_runtimes, self._sets = map(cluster.informer, NEEDED)
        self._jobs.listen(self._on_job)
        self._sets.listen(self._on_set)
        for informer in (self._runtimes, self._cluster_runtimes):
            informer.listen(self._on_runtime)

    def reconcile(self, key: str) -> float | None:
        job = self._jobs.get(key)
        if job is None or is_leaving(job) or str(job["spec"].get("managedBy") or "") not in _OURS:
            return None
        if not (is_true(job, "Complete") or is_true(job, "Failed")):
            self._make_set(job)
        status, now = copy.deepcopy(job.get("status") or {}), self.clock.now()
        _suspend(job, status, now)
        again_s = self._end_late(job, status, now)
        if (jobset := self._sets.get(key)) is not None:
            _follow(jobset, status, now)
        if patch := difference(job.get("status") or {}, status):
            body = {"metadata": {"uid": uid_of(job)}, "status": patch}
            path = TRAIN_JOBS.path(namespace_of(job), name_of(job), "status")
            self._jobs.learn(self.client.merge_patch(path, body))
        return again_s

    def _make_set(self, job: Object) -> None:
        namespace, suspended = namespace_of(job), bool(job["spec"].get("suspend"))
        existing = self._sets.get(key_of(job))
        if existing is None:
            if (runtime := self._runtime_of(job)) is not None:
                with contextlib.suppress(MemberExists):
                    self._sets.learn(self.client.create(JOB_SETS.path(namespace), jobset_of(job, runtime)))
            return
        if bool(existing["spec"].get("suspend")) != suspended:
            body = {"metadata": {"uid": uid_of(existing)}, "spec": {"suspend": suspended}}
            self._sets.learn(self.client.merge_patch(JOB_SETS.path(namespace, name_of(job)), body))

    def _runtime_of(self, job: Object) -> Object | None:
        reference = job["spec"]["runtimeRef"]
        if reference.get("kind") == TRAINING_RUNTIMES.kind:
            return self._runtimes.get(f"{namespace_of(job)}/{reference['name']}")
        return self._cluster_runtimes.get(f"/{reference['name']}")

    def _end_late(self, job: Object, status: Object, now: float) -> float | None:
        """Ends a job that has exceeded its deadline. Otherwise returns the remaining (real) seconds."""
        limit = job["spec"].get("activeDeadlineSeconds")
        if not limit or job["spec"].get("suspend") or has(status, "Complete") or has(status, "Failed"):
            return None
        resumed = condition(job, "Suspended")
        start = resumed["lastTransitionTime"] if resumed else job["metadata"]["creationTimestamp"]
        remaining_s = parse_stamp(start) + self.clock.real(float(limit)) - now
        if remaining_s > 0:
            return remaining_s
        words = "TrainJob exceeded its active deadline"
        put(status, "Failed", true=True, reason="DeadlineExceeded", message=words, now=now)
        with contextlib.suppress(MemberMissing):
            self.client.delete(JOB_SETS.path(namespace_of(job), name_of(job)), propagation="Background")
        return None

    def _on_job(self, change: str, job: Object) -> None:
        if change != "DELETED":
            self.queue.add(key_of(job))

    def _on_set(self, _change: str, jobset: Object) -> None:
        owner = controller_of(jobset)
        if owner and owner["kind"] == TRAIN_JOBS.kind:
            self.queue.add_after(f"{namespace_of(jobset)}/{owner['name']}", GATHER_S)

    def _on_runtime(self, change: str, runtime: Object) -> None:
        """Queues jobs that were created before their runtime."""
        for job in self._jobs.all() if change == "ADDED" else ():
            if job["spec"]["runtimeRef"].get("name") == name_of(runtime):
                self.queue.add(key_of(job))


def _suspend(job: Object, status: Object, now: float) -> None:
    if job["spec"].get("suspend"):
        put(status, "Suspended", true=True, reason="Suspended", message="TrainJob is suspended", now=now)
    else:
        deny(status, "Suspended", reason="Resumed", message="TrainJob is resumed", now=now)


def _follow(jobset: Object, status: Object, now: float) -> None:
    """Copies the result and the counts of the JobSet into the TrainJob's status."""
    for theirs, ours in (("Completed", "Complete"), ("Failed", "Failed")):
        if is_true(jobset, theirs) and not has(status, ours):
            reported = condition(jobset, theirs) or {}
            put(status, ours, true=True, reason=reported["reason"], message=reported["message"], now=now)
    if counts := (jobset.get("status") or {}).get("replicatedJobsStatus"):
        status["jobsStatus"] = counts


def jobset_of(job: Object, runtime: Object) -> Object:
    """The JobSet of a TrainJob."""
    template, policy = copy.deepcopy(runtime["spec"]["template"]), runtime["spec"].get("mlPolicy") or {}
    metadata, spec = template.get("metadata") or {}, template["spec"]
    for runtime_patch in job["spec"].get("runtimePatches") or []:
        patch = (runtime_patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        metadata = patches.merge(metadata, patch.get("metadata") or {})
        _patch(spec, (patch.get("spec") or {}).get("replicatedJobs") or [])
    for group in spec["replicatedJobs"]:
        _write(group, job, policy)
    spec["suspend"] = bool(job["spec"].get("suspend"))
    head: Object = {"apiVersion": JOB_SETS.api_version, "kind": JOB_SETS.kind}
    own: Object = {"name": name_of(job), "namespace": namespace_of(job)}
    own["ownerReferences"] = [owner_reference(job, TRAIN_JOBS.api_version, TRAIN_JOBS.kind)]
    for field in ("labels", "annotations"):
        if metadata.get(field):
            own[field] = metadata[field]
    return {**head, "metadata": own, "spec": spec}


def _patch(spec: Object, changes: list[Any]) -> None:
    for change in changes:
        for group in spec["replicatedJobs"]:
            if group["name"] == change["name"]:
                group["template"] = patches.strategic(group["template"], change.get("template") or {})


def _write(group: Object, job: Object, policy: Object) -> None:
    """Sets the pod count of a group, and image, command, arguments and environment of its main container."""
    trainer, inner = job["spec"].get("trainer"), group["template"]["spec"]
    step = ((group["template"].get("metadata") or {}).get("labels") or {}).get(STEP)
    count = int(inner.get("parallelism") or 1)
    if step == "trainer":
        count = int((trainer or {}).get("numNodes") or policy.get("numNodes") or count)
        group["replicas"] = 1
    inner |= {"parallelism": count, "completions": count}
    for container in inner["template"]["spec"]["containers"]:
        if step != "trainer" or container["name"] != "node" or trainer is None:
            continue
        container.update({field: trainer[field] for field in ("image", "command", "args") if trainer.get(field)})
        if trainer.get("resourcesPerNode"):
            container["resources"] = patches.merge(container.get("resources") or {}, trainer["resourcesPerNode"])
        env = [*(trainer.get("env") or []), *_variables(job, policy, count)]
        container["env"] = patches.strategic({"env": container.get("env") or []}, {"env": env})["env"]


def _variables(job: Object, policy: Object, nodes: int) -> list[Object]:
    """The environment variables by which the processes find each other, for the runtime's framework."""
    name = name_of(job)
    host, processes = f"{name}-node-0-0.{name}", (job["spec"].get("trainer") or {}).get("numProcPerNode")
    if "torch" in policy:
        variables = {"PET_NNODES": str(nodes), "PET_NPROC_PER_NODE": str(processes or "auto"), "PET_NODE_RANK": _INDEX}
        variables |= {"PET_MASTER_ADDR": host, "PET_MASTER_PORT": PORT}
    elif "jax" in policy:
        variables = {
            "JAX_NUM_PROCESSES": str(nodes),
            "JAX_PROCESS_ID": _INDEX,
            "JAX_COORDINATOR_ADDRESS": f"{host}:{PORT}",
        }
    elif "xgboost" in policy:
        variables = {"DMLC_TRACKER_URI": host, "DMLC_TRACKER_PORT": PORT, "DMLC_TASK_ID": _INDEX}
        variables["DMLC_NUM_WORKER"] = str(nodes)
    else:
        variables = {}
    return [
        {"name": key, "value" if isinstance(value, str) else "valueFrom": value} for key, value in variables.items()
    ]
