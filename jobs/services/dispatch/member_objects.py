"""A job's copy in one member, over the wire: made, looked at, suspended, removed. All of it idempotent.

Everything made carries the job's uid and the attempt's number, the fencing token. An object without our job's uid is never
touched; one with an older number is a leftover, removed before anything new is made under its name; one with a newer number
means that the work is superseded. Each delete and patch names the uid and version that were judged. No database here.
"""

import contextlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from fleet.core.members import marks, observed
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberExists, MemberMissing, MemberRefused
from jobs.kinds.base import Kind, Manifest, marked


class Owner(StrEnum):
    """Whose object it is that stands under the name we want."""

    OURS = "ours"
    OLDER = "older"
    NEWER = "newer"
    FOREIGN = "foreign"


class NotYet(Exception):
    """The member is still removing something; look again soon."""


class Superseded(Exception):
    """The member has the copy of a newer attempt: nothing may be made for this one any more."""


_CONFLICT_RETRIES = 3
"""A status that is written while we judge an object changes its version: it is read and judged again."""


def labels(fleet: str, job_uid: str, attempt: int) -> dict[str, str]:
    return {
        marks.FLEET: fleet,
        marks.JOB_UID: job_uid,
        marks.ATTEMPT: str(attempt),
        marks.MANAGED_BY: marks.MANAGER,
    }


def owner(found: Mapping[str, Any], job_uid: str, attempt: int) -> Owner:
    mark = observed.mark_of((found.get("metadata") or {}).get("labels") or {})
    if mark is None or str(mark.job_uid) != job_uid:
        return Owner.FOREIGN
    if mark.attempt == attempt:
        return Owner.OURS
    return Owner.NEWER if mark.attempt > attempt else Owner.OLDER


def manifest(kind: Kind, submitted: Manifest, marks_: dict[str, str]) -> Manifest:
    """What is sent: the submitted manifest, complete, marked and running."""
    made = marked(kind, submitted, marks_)
    made.pop("status", None)
    kind.drop_ttl(made)
    kind.suspend(made, False)
    return made


def create(
    client: MemberClient, resource: Resource, body: Manifest, job_uid: str, attempt: int, *, overwrite: bool = False
) -> Manifest:
    """Makes the object, or finds it made by an earlier try of the same attempt.

    Raises `NotYet` while a leftover of an older attempt is being removed, `Superseded` when a newer attempt has its copy
    there, `MemberExists` when the name belongs to another owner. With ``overwrite`` that one is removed first: what it has
    run and how it ended is not to be taken for our copy's.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        return client.create(resource.path(namespace), body)
    except MemberExists as e:
        conflict = e
    try:
        found = client.get(resource.path(namespace, name))
    except MemberMissing as e:
        raise NotYet(f"{name} is just being removed") from e
    whose = owner(found, job_uid, attempt)
    if whose is Owner.NEWER:
        raise Superseded(f"{name} of a newer attempt is there")
    if whose is Owner.OLDER:
        remove(client, resource, namespace, name, job_uid, attempt)
        raise NotYet(f"{name} of an earlier attempt is being removed")
    if found["metadata"].get("deletionTimestamp"):
        raise NotYet(f"{name} is just being removed")
    if whose is Owner.FOREIGN:
        if not overwrite:
            raise conflict
        _delete(client, resource.path(namespace, name), found)
        raise NotYet(f"{name} of another owner is being removed, as the policy says")
    return found


Observer = Callable[[Manifest], None]
"""Gets a copy exactly as it is about to be stopped: what it reports would be lost with it."""


def ignore(_: Manifest) -> None:
    """The observer of objects whose status says nothing."""


def remove(
    client: MemberClient,
    resource: Resource,
    namespace: str,
    name: str,
    job_uid: str,
    attempt: int,
    observe: Observer = ignore,
) -> bool:
    """Deletes the job's object with all that belongs to it, unless it is of a newer attempt than ``attempt``.

    True when no such object is left, False while the member is removing it. In the foreground: the object stays until its
    pods are gone, so "gone" means the capacity is free. Raises `NotYet` when it changed meanwhile, and is not deleted.
    """
    path = resource.path(namespace, name)
    try:
        found = client.get(path)
        if owner(found, job_uid, attempt) in (Owner.FOREIGN, Owner.NEWER):
            return True
        # Before the deletion, which names this version: a status written since then is read and observed first.
        observe(found)
        if not found["metadata"].get("deletionTimestamp"):
            _delete(client, path, found)
            client.get(path)
    except MemberMissing:
        return True
    except MemberChanged as e:
        raise NotYet(f"{name} changed while it was being removed") from e
    return False


def _delete(client: MemberClient, path: str, found: Mapping[str, Any]) -> None:
    """Exactly what was judged: this object, in this version."""
    metadata = found["metadata"]
    client.delete(path, propagation="Foreground", uid=metadata["uid"], version=metadata["resourceVersion"])


def suspend(
    client: MemberClient,
    resource: Resource,
    kind: Kind,
    namespace: str,
    name: str,
    job_uid: str,
    attempt: int,
    observe: Observer = ignore,
) -> bool:
    """Sets the suspend switch of the attempt's copy; False when the member has no copy of this attempt."""
    path = resource.path(namespace, name)
    for _ in range(_CONFLICT_RETRIES):
        try:
            found = client.get(path)
            if owner(found, job_uid, attempt) is not Owner.OURS:
                return False
            observe(found)
            _switch_off(client, kind, path, found)
            return True
        except MemberMissing:
            return False
        except MemberChanged:
            continue
    raise NotYet(f"{name} changes too often to be suspended")


def _switch_off(client: MemberClient, kind: Kind, path: str, found: Manifest) -> None:
    judged = {field: found["metadata"][field] for field in ("uid", "resourceVersion")}
    switch: Manifest = {"metadata": judged}
    kind.suspend(switch, True)
    client.merge_patch(path, switch)
    if command := kind.suspend_command(found):
        with contextlib.suppress(MemberExists):
            client.create(command[0].path(found["metadata"]["namespace"]), command[1])


def refused(error: MemberRefused) -> str:
    """The member's no as one line."""
    return f"{error.reason or 'refused'}: {error.message}"[:400]
