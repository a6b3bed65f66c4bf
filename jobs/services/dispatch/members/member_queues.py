"""Chooses the Volcano queue of a gang in its member: the queue that the job names, else the one with its quota leaf's name.

A closed queue accepts no jobs, so the job is not sent to that member. If the member has no queue of that name, its default
queue is used. This module does not use the database.
"""

from fleet.kube.resources import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from fleet.member.client import MemberClient
from fleet.member.errors import MemberMissing
from fleet.models import Cluster
from jobs.kinds.base import Manifest

_QUEUED = {(resource.api_version, resource.kind) for resource in (VOLCANO_POD_GROUPS, VOLCANO_JOBS)}
_CLOSED = ("Closed", "Closing")


class QueueClosed(Exception):
    """The member's queue is closed."""


def join(client: MemberClient, cluster: Cluster, leaf: str, *objects: Manifest) -> None:
    """Sets the queue of each object whose kind has one, in place. Raises `QueueClosed`."""
    if not cluster.serves(VOLCANO_QUEUES.api_version, VOLCANO_QUEUES.kind):
        return
    for body in objects:
        if (body["apiVersion"], body["kind"]) in _QUEUED:
            name = body["spec"].get("queue") or leaf.rpartition("/")[2]
            if name and _exists(client, name):
                body["spec"]["queue"] = name


def _exists(client: MemberClient, name: str) -> bool:
    try:
        queue = client.get(VOLCANO_QUEUES.path(name=name))
    except MemberMissing:
        return False
    state = (queue.get("status") or {}).get("state")
    if state in _CLOSED:
        raise QueueClosed(f"its queue {name} is {state.lower()}")
    return True
