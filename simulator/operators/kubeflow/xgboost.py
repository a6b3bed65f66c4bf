"""XGBoostJobs, also for LightGBM: workers connect to a master, and the job ends with the master. No I/O."""

from fleet.kube.resources import XGBOOST_JOBS
from simulator.machinery.objects import Object
from simulator.operators.kubeflow.pods import Counts, KubeflowKind, replicas_of


class XGBoost(KubeflowKind):
    resource = XGBOOST_JOBS
    key = "xgbReplicaSpecs"
    roles = ("Master", "Worker")
    chiefs = ("Master",)
    container = "xgboost"
    port_name, port = "xgboostjob-port", 9999
    operator = "xgboostjob-controller"
    restart_default = "Never"

    def wrong(self, job: Object) -> str:
        roles = self.roles_of(job)
        if "Master" not in roles or replicas_of(roles["Master"]) != 1:
            return "there must be exactly one Master"
        return self.missing_container(job)

    def succeeded(self, job: Object, counts: Counts) -> bool:
        return bool(counts["Master"].succeeded)

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        """The environment. ``WORKER_*`` are for LightGBM; a job with one pod has none."""
        roles = self.roles_of(job)
        total = sum(replicas_of(spec) for spec in roles.values())
        env = {
            "MASTER_PORT": str(port),
            "MASTER_ADDR": self.pod_name(job, "Master", 0),
            "WORLD_SIZE": str(total),
            "RANK": str(index if role == "Master" else index + 1),
            "PYTHONUNBUFFERED": "1",
        }
        if total > 1:
            workers = (self.pod_name(job, "Worker", i) for i in range(total - 1))
            env |= {"WORKER_PORT": str(port), "WORKER_ADDRS": ",".join(workers)}
        return env
