"""kubeflow.org/v1 JAXJob: Workers alone; worker 0 is the coordinator that the others connect to."""

from fleet.kube.resources import JAX_JOBS
from jobs.kinds.kubeflow import ReplicaKind


class JAXJob(ReplicaKind):
    resource = JAX_JOBS
    primary_roles = ("worker",)
    key = "jaxReplicaSpecs"
    roles = ("Worker",)
    container = "jax"
