"""A job's copy in one member, over the wire: made, looked at, suspended, removed. All of it idempotent.

Everything made carries the job's uid and the attempt's number. What does not carry our job's uid is never touched; what
carries an older number is a leftover, removed before anything new is made under its name. No database here.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from fleet.core import marks
from fleet.kube import resources
from fleet.kube.resources import Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberDenied, MemberExists, MemberMissing, MemberRefused
from jobs.kinds.base import Kind, Manifest, marked


class Owner(StrEnum):
    """Whose object it is that stands under the name we want."""

    OURS = "ours"
    OLDER = "older"
    FOREIGN = "foreign"


class NotYet(Exception):
    """The member is still removing something; look again soon."""


def labels(fleet: str, job_uid: str, attempt: int) -> dict[str, str]:
    return {
        marks.FLEET: fleet,
        marks.JOB_UID: job_uid,
        marks.ATTEMPT: str(attempt),
        marks.MANAGED_BY: marks.MANAGER,
    }


def owner(found: Mapping[str, Any], job_uid: str, attempt: int) -> Owner:
    has = (found.get("metadata") or {}).get("labels") or {}
    if has.get(marks.JOB_UID) != job_uid:
        return Owner.FOREIGN
    return Owner.OURS if has.get(marks.ATTEMPT) == str(attempt) else Owner.OLDER


def manifest(kind: Kind, submitted: Manifest, marks_: dict[str, str]) -> Manifest:
    """What is sent: the submitted manifest, complete, marked and running."""
    made = marked(kind, submitted, marks_)
    made.pop("status", None)
    kind.suspend(made, False)
    return made


def ensure_namespace(client: MemberClient, namespace: str) -> None:
    """Creates the namespace unless it is there; a member that lets us not look is believed to have it."""
    try:
        client.get(resources.NAMESPACES.path(name=namespace))
    except MemberMissing:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        try:
            client.create(resources.NAMESPACES.path(), body)
        except MemberExists:
            return
    except MemberDenied:
        return


def create(
    client: MemberClient, resource: Resource, body: Manifest, job_uid: str, attempt: int, *, overwrite: bool = False
) -> None:
    """Makes the object, or finds it made by an earlier try of the same attempt.

    Raises `NotYet` while a leftover of an older attempt is being removed, `MemberExists` when the name belongs to somebody
    else. With ``overwrite`` that one is removed first: what it has run and how it ended is not to be taken for our copy's.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        client.create(resource.path(namespace), body)
        return
    except MemberExists as e:
        conflict = e
    try:
        found = client.get(resource.path(namespace, name))
    except MemberMissing as e:
        raise NotYet(f"{name} is just being removed") from e
    whose = owner(found, job_uid, attempt)
    if whose is Owner.OLDER:
        remove(client, resource, namespace, name, job_uid)
        raise NotYet(f"{name} of an earlier attempt is being removed")
    if found["metadata"].get("deletionTimestamp"):
        raise NotYet(f"{name} is just being removed")
    if whose is Owner.FOREIGN:
        if not overwrite:
            raise conflict
        client.delete(resource.path(namespace, name), propagation="Foreground", uid=found["metadata"]["uid"])
        raise NotYet(f"{name} of somebody else is being removed, as the policy says")


def remove(client: MemberClient, resource: Resource, namespace: str, name: str, job_uid: str) -> bool:
    """Deletes our object with all that belongs to it; True when it is gone, False while the member is at it.

    In the foreground: the object stays until its pods are gone, so "gone" means the capacity is free.
    """
    path = resource.path(namespace, name)
    try:
        found = client.get(path)
        metadata = found.get("metadata") or {}
        if (metadata.get("labels") or {}).get(marks.JOB_UID) != job_uid:
            return True
        if not metadata.get("deletionTimestamp"):
            client.delete(path, propagation="Foreground", uid=metadata["uid"])
            client.get(path)
    except MemberMissing:
        return True
    except MemberChanged:
        return False
    return False


def suspend(client: MemberClient, resource: Resource, kind: Kind, namespace: str, name: str, job_uid: str) -> None:
    """Sets the copy's own suspend switch; nothing to do when there is no copy of ours."""
    path = resource.path(namespace, name)
    try:
        found = client.get(path)
    except MemberMissing:
        return
    if ((found.get("metadata") or {}).get("labels") or {}).get(marks.JOB_UID) != job_uid:
        return
    switch: Manifest = {}
    kind.suspend(switch, True)
    try:
        client.merge_patch(path, switch)
        if command := kind.suspend_command(found):
            client.create(command[0].path(namespace), command[1])
    except MemberExists:
        return
    except MemberMissing:
        return


def refused(error: MemberRefused) -> str:
    """The member's no as one line."""
    return f"{error.reason or 'refused'}: {error.message}"[:400]
