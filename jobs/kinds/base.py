"""What every kind of job can tell the fleet about its manifests, and the values it tells it in.

A kind turns a manifest into roles (the gang), reads a member's status into a phase, and knows where its pod templates
and its suspend switch are. It decides nothing: quota, placement and failover see only the values below.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from fleet.errors import FieldFault
from fleet.kube.resources import Resource
from jobs.core.faults import Faults, Manifest

__all__ = ["Amounts", "Faults", "Kind", "Manifest", "Phase", "Reading", "Role", "State", "marked"]

Amounts = dict[str, int]


class Phase(StrEnum):
    """How a copy stands in its member."""

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

    def total(self) -> Amounts:
        """Whole units over all pods of all roles."""
        total: Amounts = {}
        for role in self.roles:
            for resource, amount in role.request.items():
                total[resource] = total.get(resource, 0) + amount * role.replicas
        return total


@dataclass(frozen=True, slots=True)
class State:
    """A member's status, read: the phase and the member's own words for it."""

    phase: Phase
    message: str = ""
    started_at: str = ""
    completed_at: str = ""


class Kind(Protocol):
    """One file in this package a kind; found through `jobs.kinds.registry`."""

    resource: Resource
    chief: str
    """The role whose log is the job's log."""

    def read(self, manifest: Manifest) -> Reading:
        """Roles and faults of a manifest; never raises, whatever the manifest holds."""
        ...

    def templates(self, manifest: Manifest) -> Iterator[Manifest]:
        """The pod templates inside ``manifest`` themselves, so that a caller may mark them."""
        ...

    def read_status(self, status: Manifest, running_pods: int) -> State: ...

    def suspend(self, manifest: Manifest, on: bool) -> None:
        """Sets the kind's own suspend switch in place."""
        ...

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        """Role and index of a pod, from the labels the kind's operator gives it."""
        ...


def marked(kind: Kind, manifest: Manifest, labels: dict[str, str]) -> Manifest:
    """A copy of ``manifest`` with ``labels`` on the object and on every pod template."""
    made = copy.deepcopy(manifest)
    for target in (made, *kind.templates(made)):
        metadata = target.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return made
