"""Demand without members: clusters and jobs as rows, cycles taken by hand, ends reported as a member would."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import yaml
from django.utils import timezone

from fleet.core.members import marks
from fleet.kube.resources import Resource
from fleet.models import Cluster, Hold
from jobs import snapshot
from jobs.kinds import registry
from jobs.models import Job, Work
from jobs.services.follow.status import JobEventHandler
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from tests.quotas.core.builders import quota
from tests.support.world import POLICY

APIS = {"kubeflow.org/v1": {"PyTorchJob": "pytorchjobs"}, "batch/v1": {"Job": "jobs"}}
GPU = "nvidia.com/gpu"


def a_cluster(name: str = "north", gpus: int = 8) -> Cluster:
    now = timezone.now()
    made = Cluster.objects.create(
        name=name, access={}, state=Cluster.State.READY, apis=APIS, state_since=now, joined_at=now, synced_at=now
    )
    offered = {"cpu": 10**6, "memory": 2**50, GPU: gpus, "pods": 10**4}
    made.nodes.create(name="node", ready=True, allocatable=offered)
    return made


def apply(*texts: str) -> None:
    submit.apply(manifests.parse("\n---\n".join((POLICY, *texts)).encode()), by="test", now=timezone.now())


def annotated(name: str, value: str, text: str) -> str:
    """The document with this annotation."""
    body = yaml.safe_load(text)
    body["metadata"].setdefault("annotations", {})[name] = value
    return str(yaml.safe_dump(body))


def tolerating(name: str, *, seconds: int) -> None:
    """The policy of the job moves it when it has been unhealthy for so long."""
    row = Job.objects.get(name=name).policy
    assert row is not None
    conditions = {"decisionConditions": {"tolerationSeconds": seconds}, "purgeMode": "Gracefully"}
    row.manifest["spec"]["failover"] = {"application": conditions}
    row.save(update_fields=["manifest"])


def cycle(now: datetime | None = None) -> int:
    return loop.run(lambda: now or timezone.now())


def job(name: str) -> Job:
    return Job.objects.get(name=name)


def end(name: str) -> None:
    """As the member says it: the copy has succeeded, and its pods hold nothing any more."""
    report(name, "Succeeded")


def report(name: str, condition: str, *, on: Cluster | None = None, now: datetime | None = None) -> None:
    """The member's copy of the current attempt has this condition; of one that left its cluster, where its copy is."""
    job = Job.objects.get(name=name)
    where = on.pk if on else job.cluster_id or Work.objects.get(job_uid=job.uid, attempt=job.attempt).cluster_id
    status = {"conditions": [{"type": condition, "status": "True"}]}
    JobEventHandler().on_update(where, resource(name), [copy(name, status)], now or timezone.now())


def copy(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    """What a member has of the current attempt: the very object that was made, where one was."""
    of = Job.objects.get(name=name)
    labels = {marks.JOB_UID: str(of.uid), marks.ATTEMPT: str(of.attempt)}
    uid = Work.objects.filter(job_uid=of.uid, attempt=of.attempt).values_list("object_uid", flat=True).first()
    metadata = {"name": name, "namespace": of.namespace, "labels": labels, **({"uid": uid} if uid else {})}
    return {"metadata": metadata, "status": status}


def resource(name: str) -> Resource:
    of = Job.objects.get(name=name)
    return registry.kind_of(of.api_version, of.kind).resource


def sent() -> None:
    """Every copy that is to be sent has been; what it holds shows as a hold."""
    Work.objects.filter(state=Work.State.PENDING).update(state=Work.State.APPLIED)


def gone(name: str) -> None:
    """No copy of the job is left, and nobody was told."""
    uid = job(name).uid
    Work.objects.filter(job_uid=uid).update(state=Work.State.GONE)
    Hold.objects.filter(job_uid=uid).update(released_at=timezone.now())


def used(path: str) -> dict[str, int]:
    """By the ledger the scheduler would read now."""
    found = snapshot.load_quota()
    return found.ledger.used(path) if found else {}


def team(name: str, low: int = 0, high: int = 1000, **fields: Any) -> dict[str, Any]:
    return quota(name, {GPU: low}, {GPU: high}, **fields)
