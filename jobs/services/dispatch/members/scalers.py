"""Resizes a running copy by the objects that its operator follows, where it follows no field of the copy (`Kind.scalers`).

What is to be done follows from the member alone, so that a worker that dies at any line leaves nothing to be remembered: an
object that is under way is waited for, and only then the pods that are there are compared with those that are wanted. An
object that adds pods is removed when fewer are wanted meanwhile: pods may not come for as long as it may take. This module
does not use the database.
"""

from collections.abc import Sequence
from typing import Any

from fleet.core.members import marks
from fleet.kube.resources import PODS, Resource
from fleet.member.client import MemberClient
from fleet.member.errors import MemberMissing
from jobs.core.resizing.bounds import RESIZED, Sizes
from jobs.kinds.base import Kind, Manifest, Phase, Scalers
from jobs.models import Work
from jobs.services.dispatch.members import member_objects

_ENDED = ("Succeeded", "Failed")


def follow(client: MemberClient, kind: Kind, work: Work, labels: dict[str, str], sizes: Sizes) -> str:
    """Does what can be done now for the copy to have these sizes. Returns what it waits for; empty: it has them.

    A copy that has no other size than it was sent with is left to its operator.
    """
    scalers = kind.scalers
    copy = _copy(client, kind, work) if scalers else None
    if scalers is None or copy is None:
        return ""
    if kind.read_status(copy.get("status") or {}, 0).phase is not Phase.RUNNING:
        return "the copy does not run, and is resized once it does"
    made = [(resource, each) for resource in (scalers.fewer, scalers.more) for each in _ours(client, work, resource)]
    under_way = [(resource, each) for resource, each in made if not kind.is_carried_out(each)]
    for role, wanted in sizes.items():
        pods = _pods(client, kind, work, role)
        if under_way:
            return _wait(client, scalers, under_way, is_too_many=len(pods) > wanted)
        if len(pods) != wanted:
            for resource, each in made:
                _delete(client, resource, each)
            return _make(client, kind, scalers, work, copy["metadata"]["uid"], labels, pods, wanted)
    return ""


def _wait(
    client: MemberClient, scalers: Scalers, under_way: Sequence[tuple[Resource, Manifest]], *, is_too_many: bool
) -> str:
    for resource, each in under_way:
        if is_too_many and resource == scalers.more:
            _delete(client, resource, each)
    resource, each = under_way[0]
    return f"{resource.kind} {each['metadata']['name']} is under way"


def _make(
    client: MemberClient,
    kind: Kind,
    scalers: Scalers,
    work: Work,
    uid: str,
    labels: dict[str, str],
    pods: Sequence[str],
    wanted: int,
) -> str:
    resource, copy = scalers.resource_for(len(pods), wanted), kind.resource
    name = f"{work.name}-{work.attempt}-{work.resize_wanted}"
    owner = {"apiVersion": copy.api_version, "kind": copy.kind, "name": work.name, "uid": uid}
    metadata = {
        "name": name,
        "namespace": work.namespace,
        "labels": labels,
        "ownerReferences": [{**owner, "controller": True}],
    }
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    body = {**head, "spec": kind.scaler_spec(work.name, pods, wanted)}
    member_objects.create(client, resource, body, str(work.job_uid), work.attempt)
    return f"{resource.kind} {name} is under way"


def _copy(client: MemberClient, kind: Kind, work: Work) -> Manifest | None:
    """The copy, if it is of this attempt, is to stay, and has been resized."""
    try:
        copy = client.get(kind.resource.path(work.namespace, work.name))
    except MemberMissing:
        return None
    is_ours = member_objects.owner(copy, str(work.job_uid), work.attempt) is member_objects.Owner.OURS
    is_resized = RESIZED in (copy["metadata"].get("annotations") or {})
    return copy if is_ours and is_resized and not copy["metadata"].get("deletionTimestamp") else None


def _ours(client: MemberClient, work: Work, resource: Resource) -> list[Manifest]:
    return [each for each in _listed(client, work, resource) if not each["metadata"].get("deletionTimestamp")]


def _pods(client: MemberClient, kind: Kind, work: Work, role: str) -> list[str]:
    """The names of the role's pods that live and are to stay, by index."""
    pods = [
        (index, pod["metadata"]["name"])
        for pod in _ours(client, work, PODS)
        if (pod.get("status") or {}).get("phase") not in _ENDED
        for named, index in [kind.pod_role(pod["metadata"].get("labels") or {})]
        if named == role
    ]
    return [name for _, name in sorted(pods)]


def _listed(client: MemberClient, work: Work, resource: Resource) -> list[Any]:
    selector = f"{marks.JOB_UID}={work.job_uid},{marks.ATTEMPT}={work.attempt}"
    items: list[Any] = client.list(resource.path(work.namespace), {"labelSelector": selector})["items"]
    return items


def _delete(client: MemberClient, resource: Resource, scaler: Manifest) -> None:
    metadata = scaler["metadata"]
    client.delete(resource.path(metadata["namespace"], metadata["name"]), uid=metadata["uid"])
