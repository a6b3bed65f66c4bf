"""kubeflow.org/v1 PaddleJob: Workers alone train collectively; with Masters, the Masters are parameter servers."""

from fleet.kube.resources import PADDLE_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ReplicaKind


class PaddleJob(ReplicaKind):
    resource = PADDLE_JOBS
    primary_roles = ("master", "worker")
    key = "paddleReplicaSpecs"
    roles = ("Master", "Worker")
    container = "paddle"

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        if spec.get("elasticPolicy") is None:
            return
        elastic = faults.mapping(spec.get("elasticPolicy"), "spec.elasticPolicy")
        least = faults.whole(elastic.get("minReplicas"), "spec.elasticPolicy.minReplicas", default=0, at_least=1)
        most = faults.whole(elastic.get("maxReplicas"), "spec.elasticPolicy.maxReplicas", default=0, at_least=1)
        faults.whole(elastic.get("maxRestarts"), "spec.elasticPolicy.maxRestarts", default=0)
        if least and most and least > most:
            faults.add("spec.elasticPolicy.minReplicas", f"must be at most maxReplicas ({most}), not {least}")
        if roles and "worker" not in {role.name for role in roles}:
            faults.add("spec.elasticPolicy", "needs the role Worker: its limits are limits of workers")
