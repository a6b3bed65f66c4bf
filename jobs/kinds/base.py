"""What every kind of job can tell the fleet about its manifests, and the values it tells it in.

A kind turns a manifest into roles (the gang), reads a member's status into a phase, and knows where its pod templates
and its suspend switch are. It decides nothing: quota, placement and failover see only the values below.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from fleet.errors import FieldFault
from fleet.kube.resources import Resource

Manifest = dict[str, Any]
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


@dataclass(slots=True)
class Faults:
    """Collects every fault of a manifest, so that a person mends all of them at once."""

    found: list[FieldFault] = field(default_factory=list)

    def add(self, path: str, detail: str) -> None:
        self.found.append(FieldFault(path, detail))

    def mapping(self, value: object, path: str, *, required: bool = False) -> Manifest:
        """``value`` if it is an object, else an empty one and a fault."""
        if isinstance(value, dict):
            return value
        if value is not None or required:
            self.add(path, "is required" if value is None else f"must be an object, not {_type(value)}")
        return {}

    def whole(self, value: object, path: str, *, default: int, at_least: int = 0) -> int:
        """``value`` if it is a whole number in range, else ``default`` and a fault."""
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(path, f"must be a whole number, not {_shown(value)}")
            return default
        if not at_least <= value <= 2**31 - 1:
            self.add(path, f"must be between {at_least} and {2**31 - 1}, not {value}")
            return default
        return value

    def one_of(self, value: object, path: str, choices: tuple[str, ...]) -> None:
        if value is not None and value not in choices:
            self.add(path, f"must be one of {', '.join(choices)}, not {_shown(value)}")

    def flag(self, value: object, path: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self.add(path, f"must be true or false, not {_shown(value)}")
        return False


def marked(kind: Kind, manifest: Manifest, labels: dict[str, str]) -> Manifest:
    """A copy of ``manifest`` with ``labels`` on the object and on every pod template."""
    made = copy.deepcopy(manifest)
    for target in (made, *kind.templates(made)):
        metadata = target.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return made


def _type(value: object) -> str:
    return {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}.get(
        type(value), type(value).__name__
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
