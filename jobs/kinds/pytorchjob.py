"""kubeflow.org/v1 PyTorchJob: a Master (exactly one, or none) and Workers."""

from fleet.kube.resources import PYTORCH_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ReplicaKind, exactly_one


class PyTorchJob(ReplicaKind):
    resource = PYTORCH_JOBS
    primary_roles = ("master", "worker")
    key = "pytorchReplicaSpecs"
    roles = ("Master", "Worker")
    container = "pytorch"

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        exactly_one(roles, "master", f"spec.{self.key}.Master", faults)
        elastic = faults.mapping(spec.get("elasticPolicy"), "spec.elasticPolicy")
        least = faults.whole(elastic.get("minReplicas"), "spec.elasticPolicy.minReplicas", default=0, at_least=1)
        most = faults.whole(elastic.get("maxReplicas"), "spec.elasticPolicy.maxReplicas", default=0, at_least=1)
        if least and most and least > most:
            faults.add("spec.elasticPolicy.minReplicas", f"must be at most maxReplicas ({most}), not {least}")
