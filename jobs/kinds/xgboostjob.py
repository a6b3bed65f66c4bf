"""kubeflow.org/v1 XGBoostJob (LightGBM as well): exactly one Master, the tracker, which is rank 0, and Workers."""

from fleet.kube.resources import XGBOOST_JOBS
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ReplicaKind, exactly_one


class XGBoostJob(ReplicaKind):
    resource = XGBOOST_JOBS
    primary_roles = ("master",)
    key = "xgbReplicaSpecs"
    roles = ("Master", "Worker")
    container = "xgboost"

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        path = f"spec.{self.key}.Master"
        if roles and "master" not in {role.name for role in roles}:
            faults.add(path, "is required: the workers meet there, and its end is the end of the job")
        exactly_one(roles, "master", path, faults)
