"""Ends the running pods of a suspended copy, over the wire, where the kind's own operator does not. No database here.

DLRover's suspend switch only keeps new pods from being made, and its master makes the workers without the grace period of
their template. So, once the switch is set: the pods are deleted with the job's own grace, and SIGTERM is their notice to save;
when they are gone the copy is removed, and the pod they needed until then goes with it. Idempotent: what leaves already keeps
the time it has.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleet.core.members import marks
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberMissing
from jobs.kinds.base import Kind
from jobs.models import Work

AGAIN_S = 1.0
"""How long after one look the next follows."""
_OVERDUE = timedelta(seconds=5)
"""A pod that is still shown so long after its time is on a node that does not answer, and is not waited for."""
_LAST_GRACE_S = 1
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Stopping:
    """How far it is: pods deleted now, and pods that are still to be waited for, these included."""

    deleted: int
    left: int


def stop(client: MemberClient, kind: Kind, work: Work, grace_s: float, now: datetime) -> Stopping:
    """Deletes the copy's pods, but for those the others need to save their work; the next look says what is left.

    A member that lets us not delete pods has none left to wait for: it ends them with the copy, in their own grace period.
    """
    try:
        alive = [pod for pod in _pods(client, work) if _role(kind, pod) != kind.ended_last]
        fresh = [pod for pod in alive if not pod["metadata"].get("deletionTimestamp")]
        for pod in fresh:
            _delete(client, pod, int(grace_s))
    except MemberDenied:
        return Stopping(0, 0)
    return Stopping(len(fresh), sum(not _is_overdue(pod, now) for pod in alive))


def end_the_last(client: MemberClient, kind: Kind, work: Work) -> None:
    """Ends at once what nothing needs any more, after its copy is marked for removal: its operator would replace it before."""
    with contextlib.suppress(MemberDenied):
        for pod in _pods(client, work):
            if _role(kind, pod) == kind.ended_last and not pod["metadata"].get("deletionTimestamp"):
                _delete(client, pod, _LAST_GRACE_S)


def _pods(client: MemberClient, work: Work) -> list[dict[str, Any]]:
    selector = f"{marks.JOB_UID}={work.job_uid},{marks.ATTEMPT}={work.attempt}"
    pods = client.list(PODS.path(work.namespace), {"labelSelector": selector})["items"]
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _ENDED]


def _role(kind: Kind, pod: Mapping[str, Any]) -> str:
    return kind.pod_role(pod["metadata"].get("labels") or {})[0]


def _is_overdue(pod: Mapping[str, Any], now: datetime) -> bool:
    ends = pod["metadata"].get("deletionTimestamp")
    return bool(ends) and datetime.fromisoformat(ends) + _OVERDUE < now


def _delete(client: MemberClient, pod: Mapping[str, Any], grace_s: int) -> None:
    metadata = pod["metadata"]
    with contextlib.suppress(MemberMissing, MemberChanged):
        client.delete(PODS.path(metadata["namespace"], metadata["name"]), uid=metadata["uid"], grace_s=grace_s)
