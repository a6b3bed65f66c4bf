"""kubeflow.org/v1 PaddleJob: Workers alone train collectively; with Masters, the Masters are parameter servers."""

from fleet.kube.resources import PADDLE_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ElasticKind, read_elastic_policy


class PaddleJob(ElasticKind):
    resource = PADDLE_JOBS
    primary_roles = ("master", "worker")
    key = "paddleReplicaSpecs"
    roles = ("Master", "Worker")
    container = "paddle"

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        if spec.get("elasticPolicy") is None:
            return
        elastic = read_elastic_policy(spec, faults)
        faults.whole(elastic.get("maxRestarts"), "spec.elasticPolicy.maxRestarts", default=0)
        if roles and "worker" not in {role.name for role in roles}:
            faults.add("spec.elasticPolicy", "needs the role Worker: its limits are limits of workers")
