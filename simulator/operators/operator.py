"""The base of all operators except Kubeflow's. No I/O.

From a job and its dependents, an operator computes a `ReconcileResult`: objects to create, objects to remove, and the status.
`controller` carries results out, until a result changes nothing.
"""

import copy
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleet.kube.resources import JOBS, PODS, SERVICES, VOLCANO_POD_GROUPS, Resource
from simulator.machinery.clock import stamp
from simulator.machinery.objects import Object, is_leaving, name_of, namespace_of, owner_reference, phase_of, uid_of

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
MADE = (PODS, JOBS, SERVICES, VOLCANO_POD_GROUPS)
"""The kinds that operators create."""


@dataclass(slots=True)
class Dependents:
    """The current dependents of a job."""

    pods: list[Object]
    jobs: list[Object] = field(default_factory=list)
    group: Object | None = None
    """Its Volcano PodGroup."""
    aborted: bool = False
    """Whether a Volcano command requests to abort the job."""
    scalers: list[Object] = field(default_factory=list)
    """Its objects ScaleIn and ScaleOut."""
    cluster: Object | None = None
    """Its RayCluster."""
    running: dict[str, int] = field(default_factory=dict)
    """The number of running pods of each of its Jobs, by the Job's name."""

    def phases(self, names: Iterable[str]) -> list[str]:
        """The phases of the named pods. ``""`` for a missing pod."""
        known = {name_of(pod): phase_of(pod) for pod in self.pods if not is_leaving(pod)}
        return [known.get(name, "") for name in names]


@dataclass(slots=True)
class ReconcileResult:
    status: Object
    make: list[tuple[Resource, Object]] = field(default_factory=list)
    """Objects to create if they are missing."""
    remove: list[Object] = field(default_factory=list)
    """Pods and Jobs to delete."""
    annotate: list[tuple[Object, dict[str, str]]] = field(default_factory=list)
    """Pods, and the annotations to set on them."""
    statuses: list[tuple[Resource, Object, Object]] = field(default_factory=list)
    """Dependents, and the status to give them, before the job gets its own."""
    resize: list[tuple[Resource, Object, Object]] = field(default_factory=list)
    """Dependents, and the fields of their spec to change."""
    again_s: float | None = None
    """When to look again though nothing has changed."""


class Operator:
    """The operator of one kind of job."""

    resource: Resource

    def step(self, job: Object, dependents: Dependents, now: float) -> ReconcileResult:
        raise NotImplementedError

    def owned(self, job: Object, name: str, labels: dict[str, str] | None = None) -> Object:
        owner = owner_reference(job, self.resource.api_version, self.resource.kind)
        meta = {"name": name, "namespace": namespace_of(job), "ownerReferences": [owner]}
        return {**meta, "labels": labels} if labels else meta

    def pod(self, job: Object, name: str, template: Object, labels: dict[str, str], restart: str = "Never") -> Object:
        meta, spec = template.get("metadata") or {}, copy.deepcopy(template["spec"])
        spec["restartPolicy"] = restart
        own = self.owned(job, name, {**(meta.get("labels") or {}), **labels})
        own["annotations"] = dict(meta.get("annotations") or {})
        return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}


def ended(job: Object, dependents: Dependents) -> list[Object]:
    """The pods to remove after a job has ended, by its cleanPodPolicy. By default those that are still running."""
    policy = str((job.get("spec") or {}).get("cleanPodPolicy") or "Running")
    finished = ("Succeeded", "Failed")
    return [
        pod for pod in dependents.pods if policy == "All" or (policy == "Running" and phase_of(pod) not in finished)
    ]


def surplus(dependents: Dependents, wanted: Iterable[str]) -> list[Object]:
    names = set(wanted)
    return [pod for pod in dependents.pods if name_of(pod) not in names]


def random_suffix(job: Object, word: str = "") -> str:
    """Five letters that look random but are always the same for the same job and word."""
    digest = hashlib.sha256(f"{uid_of(job)}/{word}".encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])


def at(status: Object, name: str, now: float) -> None:
    """Sets a timestamp in the status, if it is not set yet."""
    status.setdefault(name, stamp(now))
