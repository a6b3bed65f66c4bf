"""Holds a gang's capacity in the member before the job is sent: all of its reservations, or none and another cluster.

Idempotent like everything that is sent: names follow from the job and the attempt, so a worker that takes over finds what is
there. What is left behind by a lost member ends there by itself. Nothing is read from the database or written to it here.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings

from fleet.core import fits
from fleet.core.members import marks
from fleet.kube.resources import RESERVATIONS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberExists, MemberMissing
from fleet.models import Cluster
from jobs.kinds import reservations
from jobs.kinds.base import Kind, Manifest, Role
from jobs.kinds.reservations import Progress
from jobs.services.dispatch.member_objects import NotYet

MARKS = (marks.FLEET, marks.JOB_UID, marks.ATTEMPT, marks.MANAGED_BY)


class CannotReserve(Exception):
    """The member does not hold the gang in time, or holds it no more."""


def asked(cluster: Cluster, fit: str) -> bool:
    """Whether the cluster is to hold a gang whose policy asks for ``fit``; `CannotReserve` when it is and cannot."""
    if fits.chosen(cluster.labels, cluster.offer, fit) != fits.RESERVATION:
        return False
    if why := cluster.offer.refusal:
        raise CannotReserve(f"it {why}")
    return True


def secure_reservations(
    client: MemberClient, cluster: Cluster, kind: Kind, made: Manifest, roles: Sequence[Role], *, now: datetime
) -> None:
    """Returns when the member holds every pod of ``made``; raises `NotYet` while it is at it."""
    labels = made["metadata"]["labels"]
    reservations.bind(kind, made, fits.KOORDINATOR if cluster.offer.scheduler.startswith(fits.KOORDINATOR) else "")
    ttl = timedelta(seconds=settings.CONVOY_DISPATCH.reservation_ttl_s)
    wanted = reservations.bodies(kind, made, roles, {key: labels[key] for key in MARKS}, ttl)
    found = _found(client, labels[marks.JOB_UID], labels[marks.ATTEMPT])
    there = {each["metadata"]["name"] for each in found}
    for body in wanted:
        if body["metadata"]["name"] not in there:
            try:
                found.append(client.create(RESERVATIONS.path(), body))
            except MemberExists:
                continue
    state, message = reservations.progress(wanted, found)
    is_late = _age(found, now) > timedelta(seconds=settings.CONVOY_DISPATCH.reservation_wait_s)
    if state is Progress.LOST or (state is Progress.PENDING and is_late):
        raise CannotReserve(message)
    if state is Progress.PENDING:
        raise NotYet(message)


def _age(found: Sequence[Manifest], now: datetime) -> timedelta:
    """Of the oldest, by the member's word for when it was made."""
    times = [datetime.fromisoformat(each["metadata"]["creationTimestamp"]) for each in found]
    return now - min(times, default=now)


def remove(client: MemberClient, job_uid: str, attempt: int) -> None:
    """Gives back what the member holds for the attempt."""
    for each in _found(client, job_uid, str(attempt)):
        metadata = each["metadata"]
        try:
            path = RESERVATIONS.path(name=metadata["name"])
            client.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
        except (MemberMissing, MemberChanged):
            continue


def _found(client: MemberClient, job_uid: str, attempt: str) -> list[Manifest]:
    selector = f"{marks.JOB_UID}={job_uid},{marks.ATTEMPT}={attempt}"
    try:
        return list(client.list(RESERVATIONS.path(), {"labelSelector": selector})["items"])
    except MemberMissing:
        return []
