"""JAXJobs: only workers, which all connect to worker 0. No I/O."""

from fleet.kube.resources import JAX_JOBS
from simulator.machinery.objects import Object
from simulator.operators.kubeflow.pods import Counts, KubeflowKind, replicas_of


class Jax(KubeflowKind):
    resource = JAX_JOBS
    key = "jaxReplicaSpecs"
    roles = ("Worker",)
    chiefs = ("Worker",)
    container = "jax"
    port_name, port = "jaxjob-port", 6666
    operator = "jaxjob-controller"
    restart_default = "Never"

    def wrong(self, job: Object) -> str:
        return self.missing_container(job) if self.roles_of(job) else "jaxReplicaSpecs has no Worker"

    def succeeded(self, job: Object, counts: Counts) -> bool:
        needed = replicas_of(self.roles_of(job)["Worker"])
        return bool(needed) and counts["Worker"].succeeded >= needed

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        return {
            "PYTHONUNBUFFERED": "1",
            "COORDINATOR_PORT": str(port),
            "COORDINATOR_ADDRESS": self.pod_name(job, "Worker", 0),
            "NUM_PROCESSES": str(replicas_of(self.roles_of(job)["Worker"])),
            "PROCESS_ID": str(index),
        }
