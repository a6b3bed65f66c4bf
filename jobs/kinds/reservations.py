"""Capacity held by a member itself before a job is sent: one Koordinator Reservation for each pod of the gang. Pure.

Pods find theirs by the job's marks and their role.
A reservation that nobody takes ends by itself, so whatever becomes of the fleet, nothing stays held in a member.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from fleet.core.marks import ATTEMPT, JOB_UID
from fleet.kube.resources import RESERVATIONS
from jobs.kinds.base import Kind, Manifest, note

ROLE = "convoy.dev/role"
PATIENCE = timedelta(seconds=60)
"""How long all of a gang's reservations may take to be available; then the next cluster is tried."""
LIFE = timedelta(minutes=10)
"""When one that no pod has taken ends: longer than the patience and a slow start together."""


class Progress(StrEnum):
    PENDING = "Pending"
    HELD = "Held"
    LOST = "Lost"


def bind(kind: Kind, made: Manifest) -> None:
    """Marks the pods with their role, in place: by it they are told from those of other roles."""
    for role, template in kind.templates(made):
        note(template, "labels", {ROLE: role})


def bodies(kind: Kind, made: Manifest, replicas: Mapping[str, int], marks: Mapping[str, str]) -> list[Manifest]:
    """Of every pod of ``made``, bound and marked. Names are the same whenever it is asked for the same attempt."""
    metadata = made["metadata"]
    stem = f"{metadata['namespace']}-{metadata['name']}"[:40].rstrip("-.")
    found = []
    for role, template in kind.templates(made):
        mine = {JOB_UID: marks[JOB_UID], ATTEMPT: marks[ATTEMPT], ROLE: role}
        owner = {"labelSelector": {"matchLabels": mine}}
        for i in range(replicas.get(role, 0)):
            found.append(
                {
                    "apiVersion": RESERVATIONS.api_version,
                    "kind": RESERVATIONS.kind,
                    "metadata": {"name": f"{stem}-{_short(marks)}-{role}-{i}".lower(), "labels": dict(marks)},
                    "spec": {
                        "template": template,
                        "owners": [owner],
                        "ttl": f"{int(LIFE.total_seconds())}s",
                        "allocateOnce": True,
                    },
                }
            )
    return found


def _short(marks: Mapping[str, str]) -> str:
    """Of the job's uid and the attempt: what tells two gangs of one name apart."""
    return f"{marks[JOB_UID][:8]}-{marks[ATTEMPT]}"


def progress(wanted: Sequence[Manifest], found: Iterable[Mapping[str, Any]]) -> tuple[Progress, str]:
    """How far the member is; a reservation that a pod has taken already counts as held."""
    phases = {each["metadata"]["name"]: (each.get("status") or {}).get("phase") or "Pending" for each in found}
    mine = [phases.get(each["metadata"]["name"], "Pending") for each in wanted]
    if "Failed" in mine:
        return Progress.LOST, f"{mine.count('Failed')} of {len(mine)} reservations have failed or ended"
    held = mine.count("Available") + mine.count("Succeeded")
    told = f"{held} of {len(mine)} reservations are available"
    return (Progress.HELD if held == len(mine) else Progress.PENDING), told
