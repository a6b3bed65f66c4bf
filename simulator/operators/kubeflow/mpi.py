"""MPIJobs, as the training operator (v1) and the MPI operator (v2beta1) run them: a launcher that reaches workers. Pure."""

from fleet.kube.resources import CONFIG_MAPS, JOBS, MPI_JOBS_V1, MPI_JOBS_V2, SECRETS, SERVICES, Resource
from simulator.machinery.objects import Object, labels_of, name_of, namespace_of
from simulator.operators.kubeflow.pods import PREFIX, Counts, KubeflowKind, owned_meta, policy_of, replicas_of

_RUNNING = {"v1": "kubexec.sh", "v2beta1": "discover_hosts.sh"}
_KEY = "c2ltdWxhdGVk"
"""Placeholder in base64. Nothing in the simulation uses ssh."""
_HOSTS = {
    "OpenMPI": {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames": "true"},
    "Intel": {"I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile"},
    "MPICH": {"HYDRA_HOST_FILE": "/etc/mpi/hostfile"},
}


class MpiV1(KubeflowKind):
    resource = MPI_JOBS_V1
    key = "mpiReplicaSpecs"
    roles = ("Launcher", "Worker")
    chiefs = ("Launcher",)
    container = ""
    operator = "mpijob-controller"
    restart_default = "Never"
    services = False

    def wrong(self, job: Object) -> str:
        roles = self.roles_of(job)
        if "Launcher" not in roles or replicas_of(roles["Launcher"]) != 1:
            return "there must be exactly one Launcher"
        return ""

    def pod_name(self, job: Object, role: str, index: int) -> str:
        name = f"{name_of(job)}-{role.lower()}"
        return name if role == "Launcher" else f"{name}-{index}"

    def runs(self, job: Object, counts: Counts) -> bool:
        workers = counts.get("Worker")
        needed = replicas_of(self.roles_of(job)["Worker"]) if workers else 0
        return bool(counts["Launcher"].active) and (workers is None or workers.active + workers.succeeded >= needed)

    def succeeded(self, job: Object, counts: Counts) -> bool:
        return bool(counts["Launcher"].succeeded)

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        if role != "Launcher":
            return {}
        agent = {"OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh"}
        return {**agent, "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "NVIDIA_VISIBLE_DEVICES": ""}

    def finish_pod(self, job: Object, role: str, pod: Object) -> None:
        """Mounts the list of the job's hosts into launcher and workers."""
        spec = pod["spec"]
        spec["volumes"] = [
            *(spec.get("volumes") or []),
            {"name": "mpi-job-config", "configMap": {"name": f"{name_of(job)}-config"}},
        ]
        for container in spec["containers"]:
            mount = {"name": "mpi-job-config", "mountPath": "/etc/mpi"}
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]

    def extras(self, job: Object) -> list[tuple[Resource, Object]]:
        workers = self.roles_of(job).get("Worker")
        hosts = [self.pod_name(job, "Worker", i) for i in range(replicas_of(workers) if workers else 0)]
        data = {"hostfile": self._hostfile(job, hosts), _RUNNING[self.resource.version]: "#!/bin/sh\n"}
        meta = owned_meta(self, job, f"{name_of(job)}-config")
        return [(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})]

    def _hostfile(self, job: Object, hosts: list[str]) -> str:
        return "".join(f"{host} slots={_slots(job)}\n" for host in hosts)


class MpiV2(MpiV1):
    """The launcher is a batch Job of its own, whose pod is replaced by the Job controller."""

    resource = MPI_JOBS_V2
    operator = "mpi-operator"

    def made_by_job(self, role: str) -> bool:
        return role == "Launcher"

    def due(self, job: Object, role: str, counts: Counts) -> bool:
        if role != "Launcher" or job["spec"].get("launcherCreationPolicy") != "WaitForWorkersReady":
            return True
        return counts["Worker"].active >= replicas_of(self.roles_of(job)["Worker"])

    def labels(self, job: Object, role: str, index: int) -> dict[str, str]:
        labels = {f"{PREFIX}job-name": name_of(job), f"{PREFIX}operator-name": self.operator}
        labels[f"{PREFIX}job-role"] = role.lower()
        return labels if role == "Launcher" else {**labels, f"{PREFIX}replica-index": str(index)}

    def place_of(self, pod: Object) -> tuple[str, int]:
        labels = labels_of(pod)
        return self.role_of(labels.get(f"{PREFIX}job-role", "")), int(labels.get(f"{PREFIX}replica-index", "0"))

    def environment(self, job: Object, role: str, index: int, port: int) -> dict[str, str]:
        env = {"K_MPI_JOB_ROLE": role.lower()}
        if role != "Launcher":
            return env
        way = str(job["spec"].get("mpiImplementation") or "OpenMPI")
        slots = {"OpenMPI": {"OMPI_MCA_orte_set_default_slots": _slots(job)}, "Intel": {"I_MPI_PERHOST": _slots(job)}}
        return {
            **env,
            **_HOSTS[way],
            **slots.get(way, {}),
            "NVIDIA_VISIBLE_DEVICES": "",
            "NVIDIA_DRIVER_CAPABILITIES": "",
        }

    def extras(self, job: Object) -> list[tuple[Resource, Object]]:
        name = name_of(job)
        labels = {f"{PREFIX}job-name": name, f"{PREFIX}operator-name": self.operator}
        service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": owned_meta(self, job, name)}
        service["spec"] = {"clusterIP": "None", "selector": labels}
        secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": owned_meta(self, job, f"{name}-ssh")}
        secret["type"] = "kubernetes.io/ssh-auth"
        secret["data"] = {"ssh-privatekey": _KEY, "ssh-publickey": _KEY}
        return [*super().extras(job), (SERVICES, service), (SECRETS, secret)]

    def _hostfile(self, job: Object, hosts: list[str]) -> str:
        open_mpi = job["spec"].get("mpiImplementation") in (None, "", "OpenMPI")
        ending = f" slots={_slots(job)}" if open_mpi else f":{_slots(job)}"
        return "".join(f"{host}.{name_of(job)}.{namespace_of(job)}.svc{ending}\n" for host in hosts)

    def job_of(self, job: Object, pod: Object) -> Object:
        """The batch Job that keeps the launcher going."""
        policy = policy_of(job)
        spec: Object = {
            name: policy[name]
            for name in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
            if policy.get(name) is not None
        }
        launcher = self.roles_of(job)["Launcher"]
        pod["spec"]["restartPolicy"] = launcher.get("restartPolicy") or "OnFailure"
        meta = {key: value for key, value in pod["metadata"].items() if key in ("labels", "annotations")}
        spec["template"] = {"metadata": meta, "spec": pod["spec"]}
        labels = {"labels": self.labels(job, "Launcher", 0)}
        owned = owned_meta(self, job, self.pod_name(job, "Launcher", 0))
        return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {**owned, **labels}, "spec": spec}


def _slots(job: Object) -> str:
    return str(job["spec"].get("slotsPerWorker") or 1)
