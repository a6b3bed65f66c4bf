"""PaddleJobs: collective training by workers, or training with parameter servers (the Masters). No I/O."""

from fleet.kube.resources import PADDLE_JOBS
from simulator.machinery.objects import Object
from simulator.operators.kubeflow.pods import PREFIX, Counts, KubeflowKind, replicas_of

_ENDPOINT = "PADDLE_MASTER"
_POD_IP = "POD_IP_DUMMY"


class Paddle(KubeflowKind):
    resource = PADDLE_JOBS
    key = "paddleReplicaSpecs"
    roles = ("Master", "Worker")
    chiefs = ("Master", "Worker")
    container = "paddle"
    port_name, port = "master", 36543
    operator = "paddlejob-controller"
    restart_default = "OnFailure"

    def wrong(self, job: Object) -> str:
        if not self.roles_of(job):
            return "paddleReplicaSpecs has neither Master nor Worker"
        return self.missing_container(job)

    def succeeded(self, job: Object, counts: Counts) -> bool:
        """All pods of the first role must end; with masters, workers may still run."""
        chief = self.chief(counts)
        needed = replicas_of(self.roles_of(job)[chief])
        return bool(needed) and counts[chief].succeeded >= needed

    def labels(self, job: Object, role: str, index: int) -> dict[str, str]:
        """All masters, and no workers, have the label of the primary pod."""
        labels = super().labels(job, role, index)
        labels.pop(f"{PREFIX}job-role", None)
        return {**labels, f"{PREFIX}job-role": "master"} if role == "Master" else labels

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        roles = self.roles_of(job)
        total = sum(replicas_of(spec) for spec in roles.values())
        env = {"PYTHONUNBUFFERED": "1", "PADDLE_JOB_ID": str(job["metadata"]["name"]), "PADDLE_NNODES": str(total)}
        chief = self.chief(roles)
        first = role == chief and index == 0
        host = f"$({_POD_IP})" if first else self.pod_name(job, chief, 0)
        env[_ENDPOINT] = f"{host}:{port}"
        if "Master" in roles:
            env["PADDLE_SERVER_NUM" if role == "Master" else "PADDLE_TRAINER_NUM"] = "1"
        return env

    def finish_pod(self, job: Object, role: str, pod: Object) -> None:
        """The first pod binds to its own address. The variable POD_IP must come before the one that uses it."""
        for container in pod["spec"]["containers"]:
            env = container.get("env") or []
            place = next((i for i, each in enumerate(env) if f"$({_POD_IP})" in str(each.get("value"))), None)
            if place is not None:
                address = {"name": _POD_IP, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
                container["env"] = [*env[:place], address, *env[place:]]
