"""Capacity held by a member itself before a job is sent: one Koordinator Reservation for each pod of the gang. Pure.

Pods find theirs by the job's marks and their role.
A reservation that no pod takes ends by itself, so nothing stays held in a member whatever becomes of the fleet.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from fleet.core import units
from fleet.core.dra import classes
from fleet.core.members.marks import ATTEMPT, JOB_UID
from fleet.kube.resources import RESERVATIONS
from jobs.kinds.base import Kind, Manifest, Role, set_metadata

ROLE = "convoy.dev/role"


class Progress(StrEnum):
    PENDING = "Pending"
    HELD = "Held"
    LOST = "Lost"


def bind(kind: Kind, body: Manifest, scheduler: str = "") -> None:
    """Labels the pods with their role, in place, so that a reservation can name the pods it is for.

    Pods that name no scheduler get the one that holds their room, where it is not the member's usual one.
    """
    for role, template in kind.templates(body):
        set_metadata(template, "labels", {ROLE: role})
        if scheduler:
            template["spec"].setdefault("schedulerName", scheduler)


def bodies(
    kind: Kind, body: Manifest, roles: Iterable[Role], marks: Mapping[str, str], ttl: timedelta
) -> list[Manifest]:
    """One for each pod of ``body``, bound and marked; it ends when no pod has taken it for ``ttl``.

    Names are the same whenever it is asked for the same attempt.
    """
    metadata = body["metadata"]
    stem = f"{metadata['namespace']}-{metadata['name']}"[:40].rstrip("-.")
    templates = dict(kind.templates(body))
    reservations = []
    for each in roles:
        role, template = each.name, _asking(each, templates.get(each.name, {}))
        own_labels = {JOB_UID: marks[JOB_UID], ATTEMPT: marks[ATTEMPT], ROLE: role}
        owner = {"labelSelector": {"matchLabels": own_labels}}
        for i in range(each.replicas):
            reservations.append(
                {
                    "apiVersion": RESERVATIONS.api_version,
                    "kind": RESERVATIONS.kind,
                    "metadata": {"name": f"{stem}-{_short(marks)}-{role}-{i}".lower(), "labels": dict(marks)},
                    "spec": {
                        "template": template,
                        "owners": [owner],
                        "ttl": f"{int(ttl.total_seconds())}s",
                        "allocateOnce": True,
                    },
                }
            )
    return reservations


def _asking(role: Role, template: Manifest) -> Manifest:
    """The template; of a kind whose manifest has no whole one, one pod that asks what its kind read."""
    spec = template.get("spec") or {}
    asked = role.request.items()
    request = {name: n for name, n in asked if name != "pods" and n and not classes.is_of_class(name)}
    if {name: amount for name, amount in units.pod_request(spec).items() if name != "pods" and amount} == request:
        return template
    limits = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in request.items()}
    container = {"name": "reserved", "image": "none", "resources": {"requests": limits, "limits": limits}}
    pod_fields = {
        name: value for name, value in spec.items() if name not in ("containers", "initContainers", "volumes")
    }
    return {**template, "spec": {**pod_fields, "containers": [container]}}


def _short(marks: Mapping[str, str]) -> str:
    """Part of the job's uid, and the attempt: names of two gangs of one name differ by it."""
    return f"{marks[JOB_UID][:8]}-{marks[ATTEMPT]}"


def progress(wanted: Sequence[Manifest], present: Iterable[Mapping[str, Any]]) -> tuple[Progress, str]:
    """The progress of a gang's reservations; one that a pod has taken already counts as held."""
    phases = {each["metadata"]["name"]: (each.get("status") or {}).get("phase") or "Pending" for each in present}
    own_phases = [phases.get(each["metadata"]["name"], "Pending") for each in wanted]
    if "Failed" in own_phases:
        return Progress.LOST, f"{own_phases.count('Failed')} of {len(own_phases)} reservations have failed or ended"
    held = own_phases.count("Available") + own_phases.count("Succeeded")
    message = f"{held} of {len(own_phases)} reservations are available"
    return (Progress.HELD if held == len(own_phases) else Progress.PENDING), message
