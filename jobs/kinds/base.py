"""What every kind of job can answer about its manifests, and the values that it answers with.

A kind turns a manifest into roles (the gang), reads a member's status into a phase, and knows where its pod templates
and its suspend switch are. It decides nothing: quota, placement and failover see only the values below.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from fleet.errors import FieldFault
from fleet.kube import crds
from fleet.kube.resources import Resource
from jobs.core.manifest_fields import Faults, Manifest
from jobs.core.resizing.bounds import Bounds
from jobs.kinds import node_affinity

__all__ = [
    "DEVICES",
    "RESOLVED",
    "AccountRights",
    "Amounts",
    "Faults",
    "Find",
    "Kind",
    "Manifest",
    "Phase",
    "Reading",
    "Role",
    "Scalers",
    "State",
    "is_suspended_by_annotation",
    "suspend_by_annotation",
    "marked",
    "set_metadata",
    "without_resolved",
]

Amounts = dict[str, int]
Find = Callable[[str, str, str], Manifest | None]
"""(kind, namespace, name) -> the manifest of an object that jobs refer to, as the fleet has it."""
RESOLVED = "convoy.dev/resolved"
"""Beside a stored manifest's spec: what it refers to and is read by. No door takes it in or shows it."""
DEVICES = "convoy.dev/devices"
"""Beside a stored manifest's spec: what the claims of its pods ask for, by kind and name. No door takes it in or shows it."""
LONGEST_TTL_S = 2**31 - 1
SUSPEND_ANNOTATION = "scheduling.x-k8s.io/suspend"
"""What KubeQueue puts on jobs whose kind has no field for it."""


class Phase(StrEnum):
    """The phase of a copy in its member."""

    CREATED = "Created"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


FINISHED = frozenset({Phase.SUCCEEDED, Phase.FAILED})


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a gang: ``replicas`` pods that each ask ``request`` (whole units, ``pods: 1`` included)."""

    name: str
    replicas: int
    request: Amounts


@dataclass(frozen=True, slots=True)
class Reading:
    """What a manifest asks for; with faults, the rest is not to be used."""

    roles: tuple[Role, ...] = ()
    suspended: bool = False
    faults: tuple[FieldFault, ...] = ()
    min_available: int = 0
    """How many pods must start at once, where the rest is made by or after them; 0: all."""
    warnings: tuple[str, ...] = ()
    """What is not a fault, and not what was probably meant."""
    divides: int | None = None
    """How many completions there are to divide over clusters, 0: not counted; None: the job is never divided."""

    @property
    def pods(self) -> int:
        return sum(role.replicas for role in self.roles)

    @property
    def gang(self) -> int:
        return self.min_available or self.pods

    def total(self) -> Amounts:
        """Whole units over all pods of all roles."""
        total: Amounts = {}
        for role in self.roles:
            for resource, amount in role.request.items():
                total[resource] = total.get(resource, 0) + amount * role.replicas
        return total


@dataclass(frozen=True, slots=True)
class State:
    """A member's status, read: the phase, and the message that the member gives with it."""

    phase: Phase
    message: str = ""
    started_at: str = ""
    completed_at: str = ""


@dataclass(frozen=True, slots=True)
class Scalers:
    """The objects by which a kind's operator takes pods from a running copy, and adds pods to it: one at a time."""

    fewer: Resource
    more: Resource

    def resource_for(self, pods: int, wanted: int) -> Resource:
        return self.fewer if wanted < pods else self.more


@dataclass(frozen=True, slots=True)
class AccountRights:
    """What pods of a job do in their namespace as their ServiceAccount, and must be allowed to."""

    account: str
    owner: str
    """Which part of the job asks for it, in words."""
    rights: tuple[tuple[str, Resource], ...]


class Kind(Protocol):
    """One file in this package a kind; found through `jobs.kinds.registry`. What has a body here is the usual answer."""

    resource: Resource
    categories: tuple[str, ...] = ("all",)
    """Under which words ``kubectl get`` lists the kind together with others."""
    own_gang: bool = False
    """Whether the kind's operator makes the group its pods start in."""
    phase_words: Mapping[str, Mapping[Phase, tuple[str, ...]]] = {}
    """By path in the status where the kind says how it stands: its words for each phase, the usual one first; "": none."""
    replaces_pods: bool = False
    """Whether its runtime deletes a pod that has failed and makes another, while the job runs on."""
    follows_templates: bool = False
    """Whether its operator makes a pod that it replaces of the present template of the copy, and leaves those that run."""
    phase_conditions: Mapping[Phase, str] = {phase: phase.value for phase in Phase}
    """The conditions of the fleet's status that state a phase; a phase has none where that would mislead upstream's clients."""
    ends_pods: bool = True
    """Whether the kind's operator ends the running pods of a copy that is suspended; where not, the fleet does it."""
    makes_services: bool = False
    """Whether the kind's operator makes Services named after the job, whose names begin with a letter and have no dots."""
    ended_last: str = ""
    """Where the fleet ends them: the role whose pods the others need while they save their work."""
    refers: bool = False
    """Whether a manifest is read by another object, which `resolve` writes into it."""
    companion_resources: tuple[Resource, ...] = ()
    """What `companions` makes, under the name of the copy; removed with it."""
    primary_roles: tuple[str, ...]
    """The roles whose log is the job's log: the first that the job has."""
    how_to_resize: str = ""
    """What a manifest has to state so that the job has bounds; empty: jobs of the kind never have any."""
    scalers: "Scalers | None" = None
    """What is made beside a running copy to give it another size, where its operator follows no field of the copy."""
    ends_last: bool = False
    """Whether the operator, given fewer pods of a role, ends those of the highest indexes, whatever became of the others."""
    ends_any: bool = False
    """Whether it ends whichever pods of a role, running or not; its pods need no index then."""
    ttl_path: tuple[str, ...] = ("spec", "ttlSecondsAfterFinished")
    """Where a manifest says how long the job is kept after its end. The fleet honours it, and sends copies without it."""

    @property
    def scale(self) -> Mapping[str, str] | None:
        """Where an object has the counts that ``kubectl scale`` reads and writes; None: the kind is not scaled."""
        return None

    @property
    def short_names(self) -> tuple[str, ...]:
        """What may be typed instead of the plural, as the kind's definition has it."""
        return crds.short_names(self.resource)

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        """The longest names of labels, pods and Services that the kind's operator makes of a job's name."""
        return (name,)

    def resolve(self, manifest: Manifest, find: Find) -> None:
        """Writes what the manifest refers to and is read by into it, in place, under `RESOLVED`."""
        return

    def companions(self, body: Manifest) -> list[tuple[Resource, Manifest]]:
        """Objects that have to be in the member before the copy; taken out of the copy, in place, after all marks."""
        return []

    def read(self, manifest: Manifest) -> Reading:
        """Roles and faults of a manifest; never raises, whatever the manifest holds."""
        ...

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        """The roles and their pod templates inside ``manifest`` themselves, so that a caller may mark them."""
        ...

    def keep_to_nodes(self, manifest: Manifest, labels: Mapping[str, Mapping[str, str]]) -> None:
        """Keeps the pods of each role on nodes with these labels, beside whatever they ask of nodes themselves."""
        for role, template in self.templates(manifest):
            if stated := labels.get(role):
                spec = template.setdefault("spec", {})
                spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **stated}

    def keep_off_nodes(self, manifest: Manifest, hostnames: Sequence[str]) -> None:
        """Keeps all pods off the nodes with these hostnames, beside whatever they ask of nodes themselves."""
        for _, template in self.templates(manifest):
            node_affinity.require(template.setdefault("spec", {}), node_affinity.none_of(hostnames))

    def keep_off_nodes_instead(self, copy: Manifest, written: Manifest, hostnames: Sequence[str]) -> None:
        """Keeps the pods of a sent copy off these nodes and no others, but for what its author has ``written``, in place."""
        stated = dict(self.templates(written))
        for role, template in self.templates(copy):
            node_affinity.drop_hostnames(template.setdefault("spec", {}), stated.get(role, {}).get("spec") or {})
        if hostnames:
            self.keep_off_nodes(copy, hostnames)

    def primary_role(self, roles: Iterable[str]) -> str:
        """The chief among the roles of a job."""
        names = set(roles)
        return next((role for role in self.primary_roles if role in names), "")

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        """Those of ``templates`` whose pods wait for each other; not a pod that makes, or is made after, the others."""
        return self.templates(manifest)

    def filled_in(self, body: Manifest, uid: str) -> Manifest:
        """The manifest with what upstream's server fills in and clients read: it is shown, and never stored."""
        return body

    def without_filled_in(self, body: Manifest) -> Manifest:
        """What was shown comes back with a changed object."""
        return body

    def set_defaults(self, manifest: Manifest) -> None:
        """Writes into a copy to be sent what the kind's operator would fill in unseen, and moves what its schema would drop."""
        return

    def ttl_s(self, manifest: Manifest) -> int | None:
        """Seconds that the job is kept after its end; None: until it is deleted."""
        value = _parent(manifest, self.ttl_path).get(self.ttl_path[-1])
        return min(value, LONGEST_TTL_S) if isinstance(value, int) and not isinstance(value, bool) else None

    def drop_ttl(self, manifest: Manifest) -> None:
        """Removes it in place: a member that deletes its copy at once would delete the report of its end with it."""
        _parent(manifest, self.ttl_path).pop(self.ttl_path[-1], None)

    def scheduler(self, manifest: Manifest) -> str:
        """The scheduler that the job names, beside its templates, for all its pods."""
        return ""

    def read_status(self, status: Manifest, running_pods: int) -> State: ...

    def set_replicas(self, manifest: Manifest, replicas: int, completions: int) -> None:
        """Reduces the manifest, in place, to the share of one cluster; of kinds that divide only."""
        return

    def goes_on_without(self, manifest: Manifest, role: str, left: int, lost: Collection[int]) -> bool:
        """Whether a running copy goes on with so many pods of a role, until there are others in place of those it lacks.

        ``lost`` are the indexes of those.
        """
        bounds = self.bounds(manifest).get(role)
        return bounds is not None and left >= max(bounds.least, 1)

    def bounds(self, manifest: Manifest) -> Mapping[str, Bounds]:
        """By role that may be resized while the job runs, between which sizes; empty: none may. The manifest has no faults."""
        return {}

    def resize(self, manifest: Manifest, role: str, replicas: int) -> None:
        """Gives a role of the manifest, or of a copy, another number of pods, in place; of roles with bounds only."""
        return

    def followed(self, copy: Manifest) -> tuple[Resource, str] | None:
        """What the operator made of a running copy, and whose sizes it follows instead; None: it follows the copy."""
        return None

    def resize_followed(self, made: Manifest, role: str, replicas: int) -> None:
        """Gives a role another number of pods in what is `followed`, in place."""
        return

    def scaler_spec(self, name: str, pods: Sequence[str], wanted: int) -> Manifest:
        """The spec of the `Scalers` object that gives the copy of this name, with these pods by index, so many pods instead."""
        return {}

    def is_carried_out(self, scaler: Manifest) -> bool:
        """Whether nothing more is to be expected of a `Scalers` object: its operator has followed it, or has given up."""
        return True

    def merge_statuses(self, statuses: Sequence[Manifest], left: Sequence[Manifest] = ()) -> Manifest:
        """One status made of those of all shares and the counts of shares that have left; of kinds that divide only."""
        return {}

    def suspend(self, manifest: Manifest, on: bool) -> None:
        """Sets the kind's own suspend switch in place."""
        ...

    def suspend_command(self, copy: Manifest) -> tuple[Resource, Manifest] | None:
        """An object to make beside the copy so that it is suspended, for a kind whose switch alone does nothing."""
        return None

    def account_rights(self, manifest: Manifest) -> AccountRights | None:
        """What the job's pods must be allowed to do through the member's API; None when they do not use it."""
        return None

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        """Role and index of a pod, from the labels the kind's operator gives it; ``""`` when it gave none."""
        ...


def _parent(manifest: Manifest, path: tuple[str, ...]) -> Manifest:
    """The mapping that holds the last of ``path``; an empty one where there is none."""
    for name in path[:-1]:
        manifest = manifest.get(name) or {}
    return manifest


def marked(kind: Kind, manifest: Manifest, labels: dict[str, str]) -> Manifest:
    """A completed copy of ``manifest`` with ``labels`` on the object and on every pod template."""
    body = copy.deepcopy(manifest)
    body.pop(DEVICES, None)
    kind.set_defaults(body)
    for target in (body, *(template for _, template in kind.templates(body))):
        set_metadata(target, "labels", labels)
    return body


def without_resolved(manifest: Manifest) -> Manifest:
    """The manifest as the person wrote it."""
    return {key: value for key, value in manifest.items() if key not in (RESOLVED, DEVICES)}


def is_suspended_by_annotation(manifest: Manifest) -> bool:
    """Whether a job of a kind without a suspend field is suspended by annotation."""
    metadata = manifest.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(notes, dict) and notes.get(SUSPEND_ANNOTATION) == "true"


def suspend_by_annotation(manifest: Manifest, on: bool) -> None:
    set_metadata(manifest, "annotations", {SUSPEND_ANNOTATION: "true" if on else "false"})


def set_metadata(target: Manifest, field: str, values: dict[str, str]) -> None:
    """Adds to the labels or annotations of an object or a template, in place."""
    metadata = target["metadata"] = target.get("metadata") or {}
    if metadata.get(field) is None:
        metadata[field] = {}
    metadata[field].update(values)
