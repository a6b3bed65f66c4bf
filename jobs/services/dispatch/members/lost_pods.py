"""Removes the pods of a withdrawn copy that are on lost nodes, which no kubelet ends.

A member deletes a copy once all its pods are deleted, and a pod that is being deleted stays until its kubelet says that it has
ended. Kubernetes removes such pods itself only when their Node object is deleted, or has the taint out-of-service. Until then
the copy would stay, and its job would wait for ever. Their processes may run on: a policy that waits for clusters that do not
answer (`jobs.core.policies.unreachable`) waits for such a node too.
"""

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.core.members import marks
from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberChanged, MemberMissing
from fleet.models import Pod
from jobs.core.policies.unreachable import UNREACHABLE, Unreachable
from jobs.events import record_event
from jobs.models import Job, Work
from jobs.services.dispatch.members import stopping
from jobs.services.dispatch.members.member_objects import NotYet
from jobs.services.failover import lost_nodes
from jobs.services.failover.lost_nodes import LostNode
from jobs.snapshot import spec_of

REMOVING = "RemovingLostPods"
"""Reason of the event, which is written before a pod is deleted: a worker that dies in between leaves no pod unmentioned."""


def remove(client: MemberClient, work: Work, job: Job | None, now: datetime) -> NotYet:
    """Removes such pods, without their kubelets. Returns why the copy is not gone yet."""
    message = f"{work.cluster.name} is still removing it"
    lost = lost_nodes.of(work.cluster, now)
    mine = Pod.objects.filter(cluster_id=work.cluster_id, job_uid=work.job_uid, attempt=work.attempt)
    if not lost or not mine.filter(node__in=lost).exists():
        is_down = mine.filter(node__in=lost_nodes.not_ready(work.cluster)).exists()
        return NotYet(message, _LOOK_S if is_down else None)
    policy = spec_of(job).unreachable if job is not None else Unreachable.REPLACE
    if policy is not Unreachable.REPLACE:
        nodes = ", ".join(sorted(mine.filter(node__in=lost).values_list("node", flat=True).distinct())[:_MOST_NAMED])
        return NotYet(f"{message}: it may run on {nodes}, lost, and the policy says {UNREACHABLE}: {policy}")
    pods = [pod for pod in _pods(client, work) if _is_stuck(pod, lost, now)]
    if pods and job is not None:
        _record(job, work, pods, now)
    for pod in pods:
        metadata = pod["metadata"]
        with contextlib.suppress(MemberMissing, MemberChanged):
            client.delete(PODS.path(metadata["namespace"], metadata["name"]), uid=metadata["uid"], grace_s=0)
    return NotYet(message, _LOOK_S)


_MOST_NAMED = 3
_LOOK_S = 2.0
"""Between two looks while such pods are left: the member marks the pods of a big copy one by one, and the replacement waits."""


def _pods(client: MemberClient, work: Work) -> list[dict[str, Any]]:
    selector = f"{marks.JOB_UID}={work.job_uid},{marks.ATTEMPT}={work.attempt}"
    pods: list[dict[str, Any]] = client.list(PODS.path(work.namespace), {"labelSelector": selector})["items"]
    return pods


def _is_stuck(pod: Mapping[str, Any], lost: Mapping[str, LostNode], now: datetime) -> bool:
    """Whether it is being deleted and no kubelet will end it. One that is heard from has the pod's grace period to do so."""
    node = (pod.get("spec") or {}).get("nodeName") or ""
    if node not in lost or not pod["metadata"].get("deletionTimestamp"):
        return False
    return lost[node].is_silent or stopping.is_overdue(pod, now)


@transaction.atomic
def _record(job: Job, work: Work, pods: list[dict[str, Any]], now: datetime) -> None:
    nodes = sorted({pod["spec"]["nodeName"] for pod in pods})
    more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
    message = (
        f"Removing {len(pods)} pods of attempt {work.attempt} from lost nodes of {work.cluster.name}, without an answer of"
        f" {', '.join(nodes[:_MOST_NAMED])}{more}: their processes may run there until the node answers or is off"
    )
    record_event(job, REMOVING, message, now, warning=True)
