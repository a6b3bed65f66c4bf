"""kubeflow.org MPIJob: a launcher and the workers it reaches, in the two versions that exist apart from each other.

``v1`` is the training operator's, ``v2beta1`` the MPI operator's: one group and one plural, so a cluster serves one of them. A
manifest goes where its own version is served and is not rewritten into the other, whose workers start in another way.
"""

from collections.abc import Iterator, Sequence

from fleet.kube.resources import MPI_JOBS_V1, MPI_JOBS_V2
from jobs.kinds.base import Faults, Manifest, Role
from jobs.kinds.kubeflow import ReplicaKind, exactly_one

_JOB_ROLE = "training.kubeflow.org/job-role"
_INDEX = "training.kubeflow.org/replica-index"
_AFTER_WORKERS = "WaitForWorkersReady"


class MPIJobV1(ReplicaKind):
    resource = MPI_JOBS_V1
    primary_roles = ("launcher",)
    key = "mpiReplicaSpecs"
    roles = ("Launcher", "Worker")
    container = ""
    scaled_role = ""

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        return [f"{name}-launcher", *(f"{name}-worker-{role.replicas - 1}" for role in roles if role.name == "worker")]

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        if roles and "launcher" not in {role.name for role in roles}:
            faults.add(f"spec.{self.key}.Launcher", "is required: it starts the workers' processes and ends the job")
        exactly_one(roles, "launcher", f"spec.{self.key}.Launcher", faults)
        faults.whole(spec.get("slotsPerWorker"), "spec.slotsPerWorker", default=1, at_least=1)


class MPIJobV2(MPIJobV1):
    resource = MPI_JOBS_V2
    managers = ("kubeflow.org/mpi-operator",)

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        super().read_more(spec, roles, faults)
        faults.one_of(spec.get("mpiImplementation") or None, "spec.mpiImplementation", ("OpenMPI", "Intel", "MPICH"))
        start = spec.get("launcherCreationPolicy") or None
        faults.one_of(start, "spec.launcherCreationPolicy", ("AtStartup", _AFTER_WORKERS))
        faults.flag(spec.get("runLauncherAsWorker"), "spec.runLauncherAsWorker")

    def min_available(self, spec: Manifest, roles: tuple[Role, ...]) -> int:
        """A launcher that is made after the workers run cannot be waited for by them."""
        workers = sum(role.replicas for role in roles if role.name == "worker")
        least = super().min_available(spec, roles)
        return min(least or workers, workers) if spec.get("launcherCreationPolicy") == _AFTER_WORKERS else least

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        late = manifest["spec"].get("launcherCreationPolicy") == _AFTER_WORKERS
        return ((role, each) for role, each in self.templates(manifest) if not late or role != "launcher")

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        role, index = labels.get(_JOB_ROLE, ""), labels.get(_INDEX, "0")
        if role not in ("launcher", "worker"):
            return "", 0
        return role, int(index) if role == "worker" and index.isdigit() else 0
