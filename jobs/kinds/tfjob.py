"""kubeflow.org/v1 TFJob: parameter servers, workers, a chief and evaluators."""

from fleet.kube.resources import TF_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ReplicaKind, exactly_one


class TFJob(ReplicaKind):
    resource = TF_JOBS
    primary_roles = ("chief", "master", "worker")
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
