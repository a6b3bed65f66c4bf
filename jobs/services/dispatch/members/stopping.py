"""Ends the running pods of a suspended copy in its member, for kinds whose operator does not do so.

DLRover's suspend field only stops the creation of new pods, and its master creates the workers without the grace period of
their template. Therefore, after the copy is suspended, Convoy deletes the pods with the job's own grace period; SIGTERM tells
them to save their work. When they have ended, the copy is removed, and with it the master, which they needed until then.
Idempotent: a pod that is already ending keeps its grace period. This module does not use the database.
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

POLL_S = 1.0
"""How long the work waits between two calls of `stop`."""
_OVERDUE = timedelta(seconds=5)
"""A pod that exists so long after the end of its grace period is on a node that does not answer. It is not waited for."""
_LAST_GRACE_S = 1
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Stopping:
    """Progress: pods deleted by this call, and pods to wait for (the deleted ones included)."""

    deleted: int
    remaining: int


def stop(client: MemberClient, kind: Kind, work: Work, grace_s: float, now: datetime) -> Stopping:
    """Deletes the copy's pods, except the role that the others need to save their work (`Kind.ended_last`).

    Call it again until no pods remain. A member that does not allow to list or delete pods reports none: they then end when the
    copy is removed, with their own grace period.
    """
    try:
        alive = [pod for pod in _pods(client, work) if _role(kind, pod) != kind.ended_last]
        fresh = [pod for pod in alive if not pod["metadata"].get("deletionTimestamp")]
        for pod in fresh:
            _delete(client, pod, int(grace_s))
    except MemberDenied:
        return Stopping(0, 0)
    return Stopping(len(fresh), sum(not is_overdue(pod, now) for pod in alive))


def end_last_role(client: MemberClient, kind: Kind, work: Work) -> None:
    """Ends the pods of the role `Kind.ended_last` at once.

    Call it only when the copy is marked for removal, because its operator would replace these pods before. The garbage
    collector may have deleted them with the grace period of their template, all of which a master that ignores SIGTERM takes: a
    later deletion shortens it.
    """
    with contextlib.suppress(MemberDenied):
        for pod in _pods(client, work):
            grace_s = pod["metadata"].get("deletionGracePeriodSeconds")
            if _role(kind, pod) == kind.ended_last and (grace_s is None or grace_s > _LAST_GRACE_S):
                _delete(client, pod, _LAST_GRACE_S)


def _pods(client: MemberClient, work: Work) -> list[dict[str, Any]]:
    selector = f"{marks.JOB_UID}={work.job_uid},{marks.ATTEMPT}={work.attempt}"
    pods = client.list(PODS.path(work.namespace), {"labelSelector": selector})["items"]
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _ENDED]


def _role(kind: Kind, pod: Mapping[str, Any]) -> str:
    return kind.pod_role(pod["metadata"].get("labels") or {})[0]


def is_overdue(pod: Mapping[str, Any], now: datetime) -> bool:
    ends = pod["metadata"].get("deletionTimestamp")
    return bool(ends) and datetime.fromisoformat(ends) + _OVERDUE < now


def _delete(client: MemberClient, pod: Mapping[str, Any], grace_s: int) -> None:
    metadata = pod["metadata"]
    with contextlib.suppress(MemberMissing, MemberChanged):
        client.delete(PODS.path(metadata["namespace"], metadata["name"]), uid=metadata["uid"], grace_s=grace_s)
