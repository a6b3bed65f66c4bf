"""kubeflow.org/v1 TFJob: parameter servers, workers, a chief and evaluators.

``spec.schedulerName``, as much written about TFJobs has it, is no field of the kind: an API server drops it silently. It is
taken for what it means, and sent where it counts: in every pod template that names no scheduler of its own.
"""

from fleet.kube.resources import TF_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ReplicaKind, exactly_one


class TFJob(ReplicaKind):
    resource = TF_JOBS
    chiefs = ("chief", "master", "worker")
    key = "tfReplicaSpecs"
    roles = ("Chief", "Master", "PS", "Worker", "Evaluator")
    container = "tensorflow"

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        names = {role.name for role in roles}
        for name in ("Chief", "Master", "Evaluator"):
            exactly_one(roles, name.lower(), f"spec.{self.key}.{name}", faults)
        if {"chief", "master"} <= names:
            faults.add(f"spec.{self.key}.Master", "is another name of Chief: give one of them")
        if roles and not names & {"chief", "master", "worker"}:
            faults.add(f"spec.{self.key}", "must have a Chief or a Worker: nothing else ends the job")
        faults.one_of(spec.get("successPolicy") or None, "spec.successPolicy", ("AllWorkers",))
        faults.flag(spec.get("enableDynamicWorker"), "spec.enableDynamicWorker")
        if not isinstance(spec.get("schedulerName", ""), str):
            faults.add("spec.schedulerName", "must be the name of a scheduler")

    def complete(self, manifest: Manifest) -> None:
        scheduler = manifest["spec"].pop("schedulerName", "")
        for _, template in self.templates(manifest) if scheduler else ():
            template["spec"].setdefault("schedulerName", scheduler)
