"""The queue of Volcano that a gang stands in, in its member: the one the job names, else the one named as its quota leaf.

A closed queue takes no jobs, so the job is not sent there. A member that has no queue of that name uses its own
default. Nothing is read from the database or written to it here.
"""

from fleet.kube.resources import VOLCANO_JOBS, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from fleet.member.client import MemberClient
from fleet.member.errors import MemberMissing
from fleet.models import Cluster
from jobs.kinds.base import Manifest

_QUEUED = {(each.api_version, each.kind) for each in (VOLCANO_POD_GROUPS, VOLCANO_JOBS)}
_SHUT = ("Closed", "Closing")


class QueueClosed(Exception):
    """The member's queue is closed."""


def join(client: MemberClient, cluster: Cluster, leaf: str, *made: Manifest) -> None:
    """Writes the queue into those of ``made`` that stand in one."""
    if not cluster.serves(VOLCANO_QUEUES.api_version, VOLCANO_QUEUES.kind):
        return
    for each in made:
        if (each["apiVersion"], each["kind"]) in _QUEUED:
            name = each["spec"].get("queue") or leaf.rpartition("/")[2]
            if name and _is_there(client, name):
                each["spec"]["queue"] = name


def _is_there(client: MemberClient, name: str) -> bool:
    try:
        found = client.get(VOLCANO_QUEUES.path(name=name))
    except MemberMissing:
        return False
    state = (found.get("status") or {}).get("state")
    if state in _SHUT:
        raise QueueClosed(f"its queue {name} is {state.lower()}")
    return True
