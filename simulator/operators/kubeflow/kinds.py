"""The kinds of kubeflow.org jobs: for each its primary role, how its pods find each other, and when it is done. No I/O."""

import json
from typing import Any

from fleet.kube.resources import PYTORCH_JOBS, TF_JOBS
from simulator.machinery.objects import Object, namespace_of
from simulator.operators.kubeflow.jax import Jax
from simulator.operators.kubeflow.mpi import MpiV1, MpiV2
from simulator.operators.kubeflow.paddle import Paddle
from simulator.operators.kubeflow.pods import Counts, KubeflowKind, replicas_of
from simulator.operators.kubeflow.xgboost import XGBoost


class PyTorch(KubeflowKind):
    resource = PYTORCH_JOBS
    key = "pytorchReplicaSpecs"
    roles = ("Master", "Worker")
    chiefs = ("Master", "Worker")
    container = "pytorch"
    port_name, port = "pytorchjob-port", 23456
    operator = "pytorchjob-controller"
    restart_default = "OnFailure"

    def wrong(self, job: Object) -> str:
        roles = self.roles_of(job)
        if not roles:
            return "pytorchReplicaSpecs has neither Master nor Worker"
        if "Master" in roles and replicas_of(roles["Master"]) != 1:
            return "there must be exactly one Master"
        if "elasticPolicy" in job["spec"] and "Worker" not in roles:
            return "elasticPolicy needs the role Worker"
        return self.missing_container(job)

    def succeeded(self, job: Object, counts: Counts) -> bool:
        chief = self.chief(counts)
        any_ends = chief == "Master" or "elasticPolicy" in job["spec"]
        needed = 1 if any_ends else replicas_of(self.roles_of(job)[chief])
        return bool(needed) and counts[chief].succeeded >= needed

    def finish_pod(self, job: Object, role: str, pod: Object) -> None:
        if role == "Worker" and "Master" in self.roles_of(job):
            spec = pod["spec"]
            spec["initContainers"] = [*(spec.get("initContainers") or []), self._wait_for_master(job)]

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        roles = self.roles_of(job)
        elastic = job["spec"].get("elasticPolicy")
        nproc = str(job["spec"].get("nprocPerNode") or "auto")
        total = sum(replicas_of(spec) for spec in roles.values())
        env = {"PYTHONUNBUFFERED": "1"}
        if "Master" in roles:
            rank = index if role == "Master" else index + 1
            master = self.pod_name(job, "Master", 0)
            env |= {
                "MASTER_PORT": str(port),
                "PET_MASTER_PORT": str(port),
                "MASTER_ADDR": master,
                "PET_MASTER_ADDR": master,
                "WORLD_SIZE": str(total * (int(nproc) if nproc.isdigit() else 1)),
                "RANK": str(rank),
                "PET_NODE_RANK": str(rank),
            }
        env["PET_NPROC_PER_NODE"] = nproc
        env["PET_NNODES"] = str(total)
        return env | self._elastic_environment(job, elastic, roles, port) if elastic else env

    def _elastic_environment(self, job: Object, elastic: Object, roles: dict[str, Object], port: int) -> dict[str, str]:
        workers = replicas_of(roles["Worker"])
        least = elastic.get("minReplicas") or elastic.get("maxReplicas") or workers
        most = elastic.get("maxReplicas") or elastic.get("minReplicas") or workers
        host = elastic.get("rdzvHost") or self.pod_name(job, "Worker", 0)
        optional: dict[str, Any] = {
            "PET_RDZV_ID": elastic.get("rdzvId"),
            "PET_MAX_RESTARTS": elastic.get("maxRestarts"),
            "PET_STANDALONE": "" if elastic.get("standalone") else None,
            "PET_RDZV_CONF": ",".join(f"{c['key']}={c['value']}" for c in elastic.get("rdzvConf") or []) or None,
        }
        return {
            "PET_NNODES": f"{least}:{most}",
            "PET_RDZV_BACKEND": str(elastic.get("rdzvBackend") or "c10d"),
            "PET_RDZV_ENDPOINT": f"{host}:{elastic.get('rdzvPort') or port}",
            **{name: str(value) for name, value in optional.items() if value is not None},
        }

    def _wait_for_master(self, job: Object) -> Object:
        master = self.pod_name(job, "Master", 0)
        return {
            "name": "init-pytorch",
            "image": "alpine:3.10",
            "command": ["sh", "-c", f"until nslookup {master}; do sleep 1; done"],
            "resources": {"requests": {"cpu": "50m", "memory": "10Mi"}, "limits": {"cpu": "100m", "memory": "20Mi"}},
        }


class TensorFlow(KubeflowKind):
    resource = TF_JOBS
    key = "tfReplicaSpecs"
    roles = ("Chief", "Master", "PS", "Worker", "Evaluator")
    chiefs = ("Chief", "Master", "Worker")
    container = "tensorflow"
    port_name, port = "tfjob-port", 2222
    operator = "tfjob-controller"
    restart_default = "Never"

    def wrong(self, job: Object) -> str:
        roles = self.roles_of(job)
        if not set(roles) & set(self.chiefs):
            return "tfReplicaSpecs has neither Chief nor Worker"
        if any(replicas_of(roles[role]) > 1 for role in ("Chief", "Master") if role in roles):
            return "there must be at most one chief"
        return self.missing_container(job)

    def succeeded(self, job: Object, counts: Counts) -> bool:
        """The chief's end; without one the first worker's, or all workers' when the job says so."""
        chief = self.chief(counts)
        if chief == "Worker" and job["spec"].get("successPolicy") == "AllWorkers":
            return counts[chief].succeeded >= replicas_of(self.roles_of(job)[chief])
        return 0 in counts[chief].done

    def tolerates(self, job: Object, role: str) -> bool:
        return role == "Worker" and bool(job["spec"].get("enableDynamicWorker"))

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        """TF_CONFIG: who is where, under names that only this cluster resolves; none for a job of one pod."""
        roles = self.roles_of(job)
        if sum(replicas_of(spec) for spec in roles.values()) == 1:
            return {}
        cluster: dict[str, Any] = {
            each.lower(): [self._host(job, each, i, port) for i in range(replicas_of(spec))]
            for each, spec in roles.items()
            if each != "Evaluator"
        }
        if self.tolerates(job, role):
            cluster["worker"] = {str(index): self._host(job, role, index, port)}
        task = {"type": role.lower(), "index": index}
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}

    def _host(self, job: Object, role: str, index: int, port: int) -> str:
        return f"{self.pod_name(job, role, index)}.{namespace_of(job)}.svc:{port}"


KUBEFLOW_KINDS: tuple[KubeflowKind, ...] = (
    PyTorch(),
    TensorFlow(),
    Paddle(),
    XGBoost(),
    Jax(),
    MpiV1(),
    MpiV2(),
)
