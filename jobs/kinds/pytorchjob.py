"""kubeflow.org/v1 PyTorchJob: a Master (exactly one, or none) and Workers."""

from collections.abc import Iterator

from fleet.kube.resources import PYTORCH_JOBS, Resource
from jobs.kinds import kubeflow
from jobs.kinds.base import Faults, Manifest, Reading, State

_KEY = "pytorchReplicaSpecs"
_ROLES = ("Master", "Worker")


class PyTorchJob:
    resource: Resource = PYTORCH_JOBS
    chief = "master"

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        suspended = kubeflow.read_run_policy(spec, faults)
        roles = kubeflow.read_replicas(spec, _KEY, _ROLES, faults, container="pytorch")
        for role in roles:
            if role.name == "master" and role.replicas != 1:
                faults.add(f"spec.{_KEY}.Master.replicas", f"must be 1, not {role.replicas}")
        if not roles and not faults.found:
            faults.add(f"spec.{_KEY}", "must ask for at least one pod")
        self._read_elastic(spec, faults)
        return Reading(roles, suspended, tuple(faults.found))

    def _read_elastic(self, spec: Manifest, faults: Faults) -> None:
        elastic = faults.mapping(spec.get("elasticPolicy"), "spec.elasticPolicy")
        least = faults.whole(elastic.get("minReplicas"), "spec.elasticPolicy.minReplicas", default=0, at_least=1)
        most = faults.whole(elastic.get("maxReplicas"), "spec.elasticPolicy.maxReplicas", default=0, at_least=1)
        if least and most and least > most:
            faults.add("spec.elasticPolicy.minReplicas", f"must be at most maxReplicas ({most}), not {least}")

    def templates(self, manifest: Manifest) -> Iterator[Manifest]:
        for replica in manifest["spec"][_KEY].values():
            yield replica["template"]

    def read_status(self, status: Manifest, running_pods: int) -> State:
        return kubeflow.read_conditions(status)

    def suspend(self, manifest: Manifest, on: bool) -> None:
        kubeflow.suspend(manifest, on)

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        return kubeflow.pod_role(labels)
