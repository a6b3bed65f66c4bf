"""Creates, suspends and removes the objects of one attempt in a member. Every operation is idempotent.

Each object is labelled with the job's uid and the attempt number, which is the fencing token. An object without the job's uid
is not touched, unless the policy allows to overwrite it. An object with an older attempt number is a leftover and is removed
before a new one of its name is created. A newer number means that the work is superseded. Each delete and patch names the uid
and the version of the object that was checked. This module does not use the database.
"""

import contextlib
import copy
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from fleet.core.members import fence, marks, observed
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberExists, MemberMissing, MemberRefused
from jobs.kinds.base import Kind, Manifest, marked


class Owner(StrEnum):
    """What an existing object of the wanted name belongs to: this attempt, another attempt of the job, or something else."""

    OURS = "ours"
    OLDER = "older"
    NEWER = "newer"
    FOREIGN = "foreign"


class NotYet(Exception):
    """The work cannot be done yet, for a reason that is no failure of the member; it is tried again soon.

    ``wait_s`` says when; None: after a wait that doubles with each try.
    """

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Superseded(Exception):
    """The member has the copy of a newer attempt. Nothing may be created for this attempt any more."""


_CONFLICT_RETRIES = 3
"""How often an object is read again when its version changed between the check and the write."""


def labels(fleet: str, job_uid: str, attempt: int) -> dict[str, str]:
    return {
        marks.FLEET: fleet,
        marks.JOB_UID: job_uid,
        marks.ATTEMPT: str(attempt),
        marks.MANAGED_BY: marks.MANAGER,
    }


def owner(existing: Mapping[str, Any], job_uid: str, attempt: int) -> Owner:
    mark = observed.mark_of((existing.get("metadata") or {}).get("labels") or {})
    if mark is None or str(mark.job_uid) != job_uid:
        return Owner.FOREIGN
    if mark.attempt == attempt:
        return Owner.OURS
    return Owner.NEWER if mark.attempt > attempt else Owner.OLDER


def manifest(kind: Kind, submitted: Manifest, marks_: dict[str, str]) -> Manifest:
    """The manifest to send: the submitted one with defaults and labels, not suspended, without status and without a TTL.

    A TTL would delete the copy before its result is recorded. Whether the copy depends on the agent in the member, and whether
    that has stopped it, is not for the manifest to say.
    """
    body = marked(kind, submitted, marks_)
    body.pop("status", None)
    body["metadata"]["labels"].pop(fence.LABEL, None)
    (body["metadata"].get("annotations") or {}).pop(fence.STOPPED, None)
    kind.drop_ttl(body)
    kind.suspend(body, False)
    return body


def create(
    client: MemberClient,
    resource: Resource,
    body: Manifest,
    job_uid: str,
    attempt: int,
    *,
    overwrite: bool = False,
    author: MemberClient | None = None,
) -> Manifest:
    """Creates the object and returns it; returns the existing one if an earlier try of the same attempt has created it.

    ``author`` is the client that acts for the job's author, where that is another one; leftovers are removed by ``client``.

    Raises `NotYet` while a leftover of an older attempt is being removed, `Superseded` when a newer attempt has its copy
    there, and `MemberExists` when the name belongs to another owner. With ``overwrite``, the object of another owner is removed
    first instead of adopted: its status and its pods must not be mistaken for those of the copy.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    author = author or client
    try:
        return author.create(resource.path(namespace), body)
    except MemberExists as e:
        conflict = e
    try:
        existing = client.get(resource.path(namespace, name))
    except MemberMissing as e:
        raise NotYet(f"{name} is being removed") from e
    belongs_to = owner(existing, job_uid, attempt)
    if belongs_to is Owner.NEWER:
        raise Superseded(f"the cluster has {name} of a newer attempt")
    if belongs_to is Owner.OLDER:
        remove(client, resource, namespace, name, job_uid, attempt)
        raise NotYet(f"{name} of an earlier attempt is being removed")
    if existing["metadata"].get("deletionTimestamp"):
        raise NotYet(f"{name} is being removed")
    if belongs_to is Owner.FOREIGN:
        if not overwrite:
            raise conflict
        _delete(author, resource.path(namespace, name), existing)
        raise NotYet(f"{name} of another owner is being removed, because the policy's conflictResolution is Overwrite")
    return existing


Observer = Callable[[Manifest], None]
"""Receives a copy in exactly the version that is then stopped, because its status is lost afterwards."""


def ignore(_: Manifest) -> None:
    """The observer for objects without a status worth recording."""


def remove(
    client: MemberClient,
    resource: Resource,
    namespace: str,
    name: str,
    job_uid: str,
    attempt: int,
    observe: Observer = ignore,
) -> bool:
    """Deletes the job's object and its dependents, unless the object is of a newer attempt than ``attempt``.

    Returns True when no such object exists, False while the member is removing it. Deletion is in the foreground: the object
    exists until its pods are deleted, so that True means the capacity is free. Raises `NotYet`, without deleting anything, when
    the object changed between the check and the deletion.
    """
    path = resource.path(namespace, name)
    try:
        existing = client.get(path)
        if owner(existing, job_uid, attempt) in (Owner.FOREIGN, Owner.NEWER):
            return True
        # Observed before the deletion, which names this version: it fails if the status has changed since.
        observe(existing)
        if not existing["metadata"].get("deletionTimestamp"):
            _delete(client, path, existing)
            client.get(path)
    except MemberMissing:
        return True
    except MemberChanged as e:
        raise NotYet(f"{name} changed while it was being removed") from e
    return False


def _delete(client: MemberClient, path: str, checked: Mapping[str, Any]) -> None:
    """Deletes the object only if it still has the uid and version that were checked."""
    metadata = checked["metadata"]
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
    """Suspends the attempt's copy. Returns False when the member has no copy of this attempt."""
    path = resource.path(namespace, name)
    for _ in range(_CONFLICT_RETRIES):
        try:
            existing = client.get(path)
            if owner(existing, job_uid, attempt) is not Owner.OURS:
                return False
            observe(existing)
            _patch_suspended(client, kind, path, existing)
            return True
        except MemberMissing:
            return False
        except MemberChanged:
            continue
    raise NotYet(f"{name} changes too often to be suspended")


def _patch_suspended(client: MemberClient, kind: Kind, path: str, checked: Manifest) -> None:
    patch: Manifest = {"metadata": {field: checked["metadata"][field] for field in ("uid", "resourceVersion")}}
    kind.suspend(patch, True)
    client.merge_patch(path, patch)
    if command := kind.suspend_command(checked):
        with contextlib.suppress(MemberExists):
            client.create(command[0].path(checked["metadata"]["namespace"]), command[1])


def edit(
    client: MemberClient,
    resource: Resource,
    namespace: str,
    name: str,
    job_uid: str,
    attempt: int,
    change: Callable[[Manifest], None],
) -> bool:
    """Changes the attempt's object by ``change``, in the version that was read. Returns whether anything was written.

    Nothing is where ``change`` changes nothing, and where the member has no object of the attempt to change.
    """
    path = resource.path(namespace, name)
    for _ in range(_CONFLICT_RETRIES):
        try:
            existing = client.get(path)
            if owner(existing, job_uid, attempt) is not Owner.OURS or existing["metadata"].get("deletionTimestamp"):
                return False
            edited = copy.deepcopy(existing)
            change(edited)
            if patch := _merge_patch(existing, edited):
                checked = {field: existing["metadata"][field] for field in ("uid", "resourceVersion")}
                client.merge_patch(path, {**patch, "metadata": {**patch.get("metadata", {}), **checked}})
            return bool(patch)
        except MemberMissing:
            return False
        except MemberChanged:
            continue
    raise NotYet(f"{name} changes too often to be changed")


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Manifest:
    """The JSON merge patch from one object to the other."""
    patch: Manifest = {key: None for key in before if key not in after}
    for key, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            if inner := _merge_patch(before[key], value):
                patch[key] = inner
        elif key not in before or before[key] != value:
            patch[key] = value
    return patch


def refusal_text(error: MemberRefused) -> str:
    """The refusal as one line: the reason and the message of the member's API server."""
    return f"{error.reason or 'refused'}: {error.message}"[:400]
