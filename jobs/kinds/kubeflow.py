"""What all kubeflow.org jobs share: runPolicy, replica specs and conditions (training-operator release 1.9).

``spec.schedulerName``, as much written about TFJobs has it, is no field of these kinds: an API server drops it silently. It
is taken for what it means, and sent where it counts: in every pod template that names no scheduler of its own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from jobs.core.resizing.bounds import Bounds
from jobs.kinds.base import Faults, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.pods import read_template

RESTART_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES = ("All", "Running", "None")
_ORDER = (Phase.FAILED, Phase.SUCCEEDED, Phase.SUSPENDED, Phase.RESTARTING, Phase.RUNNING, Phase.CREATED)
_LABEL_ROLE = "training.kubeflow.org/replica-type"
_LABEL_INDEX = "training.kubeflow.org/replica-index"


class ReplicaKind(Kind):
    """A kind of replica specs by role under one key; a subclass says which, and what else its rules are."""

    key: str
    roles: tuple[str, ...]
    container: str
    scaled_role = "Worker"
    """The role whose replicas ``kubectl scale`` sets; "": none."""
    managers: tuple[str, ...] = ("kubeflow.org/training-operator",)
    makes_services = True
    ends_last = True
    follows_templates = True
    ttl_path = ("spec", "runPolicy", "ttlSecondsAfterFinished")

    @property
    def scale(self) -> Mapping[str, str] | None:
        """The paths that the training operator defines for its kinds."""
        if not self.scaled_role:
            return None
        status = f".status.replicaStatuses.{self.scaled_role}"
        return {
            "specReplicasPath": f".spec.{self.key}.{self.scaled_role}.replicas",
            "statusReplicasPath": f"{status}.active",
            "labelSelectorPath": f"{status}.selector",
        }

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        return [f"{name}-{role.name.lower()}-{role.replicas - 1}" for role in roles]

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        suspended = read_run_policy(spec, self.managers, faults)
        roles = read_replicas(spec, self.key, self.roles, faults, container=self.container)
        if not roles and not faults.found:
            faults.add(f"spec.{self.key}", "must ask for at least one pod")
        if not isinstance(spec.get("schedulerName", ""), str):
            faults.add("spec.schedulerName", "must be the name of a scheduler")
        self.read_more(spec, roles, faults)
        min_available = 0 if faults.found else self.min_available(spec, roles)
        return Reading(roles, suspended, tuple(faults.found), min_available, _apart(spec, roles, min_available))

    def read_more(self, spec: Manifest, roles: tuple[Role, ...], faults: Faults) -> None:
        """The rules of this kind alone."""
        return

    def min_available(self, spec: Manifest, roles: tuple[Role, ...]) -> int:
        """How many pods start at once, of a spec without faults; 0: all."""
        return int(((spec.get("runPolicy") or {}).get("schedulingPolicy") or {}).get("minAvailable") or 0)

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for role, replica in manifest["spec"][self.key].items():
            yield role.lower(), replica["template"]

    def scheduler(self, manifest: Manifest) -> str:
        return str(manifest["spec"].get("schedulerName") or "")

    def resize(self, manifest: Manifest, role: str, replicas: int) -> None:
        specs = manifest["spec"][self.key]
        specs[next(name for name in specs if name.lower() == role)]["replicas"] = replicas

    def set_defaults(self, manifest: Manifest) -> None:
        scheduler = manifest["spec"].pop("schedulerName", "")
        for _, template in self.templates(manifest) if scheduler else ():
            template["spec"].setdefault("schedulerName", scheduler)

    def read_status(self, status: Manifest, running_pods: int) -> State:
        return read_conditions(status)

    def suspend(self, manifest: Manifest, on: bool) -> None:
        spec = manifest.setdefault("spec", {})
        spec["runPolicy"] = {**(spec.get("runPolicy") or {}), "suspend": on}

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        index = labels.get(_LABEL_INDEX, "0")
        return labels.get(_LABEL_ROLE, ""), int(index) if index.isdigit() else 0


class ElasticKind(ReplicaKind):
    """A kind whose ``spec.elasticPolicy`` says between which numbers of workers its framework goes on."""

    how_to_resize = "state spec.elasticPolicy.minReplicas and maxReplicas"

    def bounds(self, manifest: Manifest) -> Mapping[str, Bounds]:
        elastic = manifest["spec"].get("elasticPolicy") or {}
        least, most = elastic.get("minReplicas"), elastic.get("maxReplicas")
        worker = next((name for name in manifest["spec"][self.key] if name.lower() == "worker"), None)
        if least is None or most is None or worker is None:
            return {}
        return {"worker": Bounds(least, most, "spec.elasticPolicy", f"spec.{self.key}.{worker}.replicas")}

    def goes_on_without(self, manifest: Manifest, role: str, left: int, lost: Collection[int]) -> bool:
        """The operator has the workers meet at the first of them, which is not made anew while its pod is on a lost node."""
        backend = str((manifest["spec"].get("elasticPolicy") or {}).get("rdzvBackend") or "")
        meets_there = 0 in lost and not backend.startswith("etcd")
        return not meets_there and super().goes_on_without(manifest, role, left, lost)


def read_elastic_policy(spec: Manifest, faults: Faults) -> Manifest:
    """Checks the limits of ``spec.elasticPolicy``, and returns it."""
    elastic = faults.mapping(spec.get("elasticPolicy"), "spec.elasticPolicy")
    least = faults.whole(elastic.get("minReplicas"), "spec.elasticPolicy.minReplicas", default=0, at_least=1)
    most = faults.whole(elastic.get("maxReplicas"), "spec.elasticPolicy.maxReplicas", default=0, at_least=1)
    if least and most and least > most:
        faults.add("spec.elasticPolicy.minReplicas", f"must be at most maxReplicas ({most}), not {least}")
    return elastic


def _apart(spec: Manifest, roles: tuple[Role, ...], min_available: int) -> tuple[str, ...]:
    """A warning for a job that lets some of its pods start without the others."""
    pods = sum(role.replicas for role in roles)
    if not 0 < min_available < pods or "minAvailable" not in (
        (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    ):
        return ()
    detail = f"{min_available} of {pods} pods may start and hold their GPUs while they wait for the others"
    return (f"spec.runPolicy.schedulingPolicy.minAvailable: {detail}",)


def exactly_one(roles: tuple[Role, ...], name: str, path: str, faults: Faults) -> None:
    for role in roles:
        if role.name == name and role.replicas != 1:
            faults.add(f"{path}.replicas", f"must be 1, not {role.replicas}")


def read_run_policy(spec: Manifest, managers: tuple[str, ...], faults: Faults) -> bool:
    """Checks ``spec.runPolicy``; returns whether the job is suspended."""
    policy = faults.mapping(spec.get("runPolicy"), "spec.runPolicy")
    faults.one_of(policy.get("cleanPodPolicy"), "spec.runPolicy.cleanPodPolicy", CLEAN_POD_POLICIES)
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        faults.whole(policy.get(name), f"spec.runPolicy.{name}", default=0)
    faults.one_of(policy.get("managedBy") or None, "spec.runPolicy.managedBy", managers)
    scheduling = faults.mapping(policy.get("schedulingPolicy"), "spec.runPolicy.schedulingPolicy")
    faults.whole(scheduling.get("minAvailable"), "spec.runPolicy.schedulingPolicy.minAvailable", default=0, at_least=1)
    return faults.flag(policy.get("suspend"), "spec.runPolicy.suspend")


def read_replicas(
    spec: Manifest, key: str, roles: tuple[str, ...], faults: Faults, *, container: str
) -> tuple[Role, ...]:
    """The gang of ``spec[key]``; role names are case-folded to ``roles`` as the operator does, in that order."""
    replicas = faults.mapping(spec.get(key), f"spec.{key}", required=True)
    by_fold = {role.lower(): role for role in roles}
    roles_by_name: dict[str, Role] = {}
    for name, replica in replicas.items():
        path = f"spec.{key}.{name}"
        role = by_fold.get(str(name).lower())
        if role is None:
            faults.add(path, f"is no role of this kind; roles are {', '.join(roles)}")
            continue
        if role in roles_by_name:
            faults.add(path, f"the role {role} is given twice")
            continue
        body = faults.mapping(replica, path, required=True)
        count = faults.whole(body.get("replicas"), f"{path}.replicas", default=1)
        faults.one_of(body.get("restartPolicy") or None, f"{path}.restartPolicy", RESTART_POLICIES)
        request = read_template(body.get("template"), f"{path}.template", faults, container=container)
        roles_by_name[role] = Role(role.lower(), count, request)
    return tuple(roles_by_name[role] for role in roles if role in roles_by_name and roles_by_name[role].replicas)


def read_conditions(status: Manifest) -> State:
    """State from the conditions that are True, in the order final first.

    The last condition's type, as kubectl shows it, is wrong after a resume: it reads Suspended, with status False.
    """
    true = {c.get("type"): c for c in status.get("conditions") or [] if c.get("status") == "True"}
    phase = next((p for p in _ORDER if p.value in true), Phase.CREATED)
    words = true.get(phase.value, {})
    return State(
        phase,
        message=str(words.get("message") or words.get("reason") or ""),
        started_at=str(status.get("startTime") or ""),
        completed_at=str(status.get("completionTime") or ""),
    )
