"""kubeflow.org/v1 PyTorchJob: a Master (exactly one, or none) and Workers."""

from fleet.kube.resources import PYTORCH_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ElasticKind, exactly_one, read_elastic_policy


class PyTorchJob(ElasticKind):
    resource = PYTORCH_JOBS
    primary_roles = ("master", "worker")
    key = "pytorchReplicaSpecs"
    roles = ("Master", "Worker")
    container = "pytorch"

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        exactly_one(roles, "master", f"spec.{self.key}.Master", faults)
        read_elastic_policy(spec, faults)
