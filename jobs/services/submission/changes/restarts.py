"""Starts the pods of a placed job anew with a changed spec, at its place: cluster, nodes and quota stay its own.

The former attempt ends as superseded, which is no failure and uses no budget. The next one holds what that one was placed on
before a pod of it is stopped; its copy is sent once the former one is gone, as of any two attempts on one cluster. The job asks
for it by an annotation, so that each way of applying has it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fleet.changes import events
from fleet.errors import FieldFault, InvalidInput
from fleet.models import Cluster, Hold
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.manifest_fields import Faults, Manifest
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, announce_works, record_event
from jobs.models import Attempt, Binding, Job, Work
from jobs.services.lifecycle import sizes, transitions, works
from jobs.services.scheduling.decisions import excluded_nodes

ON_CHANGE, RESTART, REFUSE = "convoy.dev/on-change", "Restart", "Refuse"
"""What becomes of a changed spec while pods of the job run; refused by default."""
_STATES = (Job.State.DISPATCHED, Job.State.RUNNING, Job.State.BACKOFF)
_SHAPE = ("name", "replicas", "request", "needs", "divides", "claims")
"""Of each role what its place and its quota depend on."""


def is_asked_for(annotations: Mapping[str, Any], faults: Faults) -> bool:
    value = annotations.get(ON_CHANGE, REFUSE)
    if value not in (RESTART, REFUSE):
        faults.add(f"metadata.annotations.{ON_CHANGE}", f"must be {RESTART} or {REFUSE}, not {value!r}")
    return bool(value == RESTART)


def refusal(job: Job, cluster: Cluster | None) -> str:
    """Why the job cannot be restarted at its place now, whatever the change; empty: it can."""
    if job.shares:
        return "it is divided over clusters"
    if job.state not in _STATES or cluster is None:
        return f"it is {job.state}"
    if cluster.state != Cluster.State.READY or cluster.cordoned or cluster.drained:
        return f"its cluster {cluster.name} takes no new pods"
    return ""


def changed_shape(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    """What of the change needs another place or quota; empty: the new pods fit where the former ones run."""
    # Of jobs from before it was kept, what each role mounts is not known.
    keys = (*_SHAPE, "mounts") if any("mounts" in role for role in before) else _SHAPE
    shapes = [{role["name"]: {key: role.get(key) for key in keys} for role in roles} for roles in (before, after)]
    names = sorted(name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name))
    return f"role {', '.join(names)} asks for other pods, resources or nodes" if names else ""


def restart(job: Job, roles_before: list[dict[str, Any]], *, by: str, now: datetime) -> None:
    """The job is locked and has its new manifest, and `refusal` had nothing against it.

    Raises `InvalidInput` where the new pods need another place than those of ``roles_before``.
    """
    cluster, why = job.cluster, changed_shape(roles_before, job.roles)
    if why or cluster is None:
        detail = (
            f"cannot change by a restart of its pods, because {why}: suspend the job, apply the change, and resume it"
        )
        raise InvalidInput(f"{job}: {detail}", (FieldFault("spec", detail),))
    former, message = job.attempt, f"restarted on {cluster.name} with a changed spec by {by}"
    held = Hold.objects.filter(job_uid=job.uid, attempt=former).first()
    labels = Work.objects.filter(job_uid=job.uid, attempt=former).values_list("node_labels", flat=True).first()
    works.end_attempts([job], Outcome.SUPERSEDED, message, now)
    works.withdraw_attempt(job, former, now)
    transitions.enter(job, JobEvent.RESTARTED)
    job.attempt += 1
    job.reason = Reason(Code.WAITING_FOR_PURGE, f"{message}: its former pods are being removed").as_json()
    job.status, job.reclaim, job.unhealthy_since = {}, None, None
    job.save(update_fields=["state", "attempt", "reason", "status", "reclaim", "unhealthy_since"])
    _open_attempt(job, cluster, held, labels, now)
    record_event(job, "Restarted", f"Attempt {job.attempt}: {message}", now)
    announce_jobs([job], now)


def _open_attempt(job: Job, cluster: Cluster, held: Hold | None, node_labels: Manifest | None, now: datetime) -> None:
    binding = Binding.objects.get(job=job)
    Binding.objects.filter(pk=binding.pk).update(attempt=job.attempt, scheduled_at=now)
    place = {"number": job.attempt, "cluster_name": cluster.name, "placed_at": now, "gpus": job.gpus}
    Attempt.objects.create(job=job, explanation=binding.explanation, **place)
    pods = sizes.pods_of(job)
    as_placed = held is not None and held.pods == pods
    Hold.objects.create(
        cluster=cluster,
        job_uid=job.uid,
        attempt=job.attempt,
        amounts=held.amounts if held is not None and as_placed else job.total,
        nodes=held.nodes if held is not None and as_placed else [],
        pods=pods,
        made_at=now,
    )
    work = Work.objects.create(
        **works.new_row(job, job.attempt, WorkEvent.RESTARTED, now),
        cluster=cluster,
        node_labels=node_labels,
        avoided_nodes=excluded_nodes.load([job.uid]).hostnames(cluster.pk, job.uid),
    )
    announce_works([work], now)
    events.enqueue("jobs.push", work.pk)
