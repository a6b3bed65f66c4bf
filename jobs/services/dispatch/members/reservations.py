"""Reserves a gang's capacity in the member before the job is sent: either all pods get a reservation, or the job is requeued.

Idempotent: the names follow from the job and the attempt, so that another worker finds the reservations that exist.
Reservations in a member that is lost expire there. This module does not use the database.
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
from jobs.services.dispatch.members.member_objects import NotYet

MARKS = (marks.FLEET, marks.JOB_UID, marks.ATTEMPT, marks.MANAGED_BY)


class CannotReserve(Exception):
    """The member did not reserve the gang's capacity in time, or no longer reserves it."""


def required(cluster: Cluster, fit: str) -> bool:
    """Whether the gang needs reservations in this cluster, given ``fit`` of its policy.

    Raises `CannotReserve` when it does and the cluster cannot reserve.
    """
    if fits.chosen(cluster.labels, cluster.offer, fit) != fits.RESERVATION:
        return False
    if refusal := cluster.offer.refusal:
        raise CannotReserve(f"it {refusal}")
    return True


def secure_reservations(
    client: MemberClient, cluster: Cluster, kind: Kind, body: Manifest, roles: Sequence[Role], *, now: datetime
) -> None:
    """Creates missing reservations, makes ``body`` use them, and returns once every pod has one.

    Raises `NotYet` while the member's scheduler is working on it, `CannotReserve` when that takes too long or has failed.
    """
    labels = body["metadata"]["labels"]
    reservations.bind(kind, body, fits.KOORDINATOR if cluster.offer.scheduler.startswith(fits.KOORDINATOR) else "")
    ttl = timedelta(seconds=settings.CONVOY_DISPATCH.reservation_ttl_s)
    wanted = reservations.bodies(kind, body, roles, {key: labels[key] for key in MARKS}, ttl)
    existing = _list_reservations(client, labels[marks.JOB_UID], labels[marks.ATTEMPT])
    names = {reservation["metadata"]["name"] for reservation in existing}
    for reservation in wanted:
        if reservation["metadata"]["name"] not in names:
            try:
                existing.append(client.create(RESERVATIONS.path(), reservation))
            except MemberExists:
                continue
    state, message = reservations.progress(wanted, existing)
    is_late = _age(existing, now) > timedelta(seconds=settings.CONVOY_DISPATCH.reservation_wait_s)
    if state is Progress.LOST or (state is Progress.PENDING and is_late):
        raise CannotReserve(message)
    if state is Progress.PENDING:
        raise NotYet(message)


def _age(existing: Sequence[Manifest], now: datetime) -> timedelta:
    """The age of the oldest reservation, by the creation time that the member reports."""
    times = [datetime.fromisoformat(reservation["metadata"]["creationTimestamp"]) for reservation in existing]
    return now - min(times, default=now)


def remove(client: MemberClient, job_uid: str, attempt: int) -> None:
    """Deletes the reservations of the attempt. Raises `MemberChanged` after the last if one of them changed meanwhile."""
    changed: MemberChanged | None = None
    for reservation in _list_reservations(client, job_uid, str(attempt)):
        metadata = reservation["metadata"]
        try:
            path = RESERVATIONS.path(name=metadata["name"])
            client.delete(path, uid=metadata["uid"], version=metadata["resourceVersion"])
        except MemberChanged as e:
            changed = e
        except MemberMissing:
            continue
    if changed is not None:
        raise changed


def _list_reservations(client: MemberClient, job_uid: str, attempt: str) -> list[Manifest]:
    selector = f"{marks.JOB_UID}={job_uid},{marks.ATTEMPT}={attempt}"
    try:
        return list(client.list(RESERVATIONS.path(), {"labelSelector": selector})["items"])
    except MemberMissing:
        return []
