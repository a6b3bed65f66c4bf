"""What a person may do to a job once it is in: suspend, resume, delete. Each decides and writes; works carry it out."""

from datetime import datetime

from django.db import transaction

from fleet.changes import events, journal
from fleet.errors import Conflict, Forbidden
from fleet.services.authorization import access
from jobs import snapshot_topology
from jobs.core.explain import timeline, waited_codes
from jobs.core.failover.lifecycle import Action, refusal
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JobEvent
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, change, record_event
from jobs.kinds import registry
from jobs.models import Binding, Dependent, Job, Policy, Work
from jobs.services.failover import failover, shares
from jobs.services.lifecycle import cycle_requests, transitions, works
from jobs.services.lifecycle.accounting import charges

State = Work.State


def allowed(job: Job, action: Action) -> str:
    """Why ``action`` is refused now; empty when it is allowed."""
    return refusal(
        action,
        state=job.state,
        suspended=job.suspended,
        finished=job.finished,
        deleting=job.deleting_at is not None,
    )


@transaction.atomic
def suspend(job: Job, *, by: str, now: datetime) -> Job:
    """Stops the job's pods and frees what they used; it stays suspended until resumed."""
    job = _locked(job, Action.SUSPEND)
    reason = Reason(Code.SUSPENDED, f"suspended by {by}")
    transitions.enter(job, JobEvent.SUSPENDED)
    before, job.suspended, job.reason = job.reason, True, reason.as_json()
    job.unhealthy_since, job.reclaim = None, None
    _switch(job, True)
    job.waited = timeline.enter_owner(job.waited, timeline.Owner.SUSPENDED, now)
    job.waited_codes = waited_codes.enter_code(job.waited_codes, before, job.reason, now)
    job.save(
        update_fields=[
            "state",
            "suspended",
            "reason",
            "waited",
            "waited_codes",
            "unhealthy_since",
            "reclaim",
            "manifest",
        ]
    )
    works.end_attempt(job, Outcome.SUSPENDED, f"suspended by {by}", now)
    works.suspend_copies([job], now)
    charges.release(now, [job.uid])
    record_event(job, "Suspended", f"Suspended by {by}", now)
    announce_jobs([job], now)
    cycle_requests.request()
    return job


@transaction.atomic
def resume(job: Job, *, by: str, now: datetime) -> Job:
    """Queues the job again; its suspended copy is removed and it may land on another cluster."""
    job = _locked(job, Action.RESUME)
    reason = Reason(Code.WAITING_FOR_SCHEDULER, f"resumed by {by}, not looked at by the scheduler yet")
    transitions.enter(job, JobEvent.RESUMED)
    before, job.suspended, job.reason = job.reason, False, reason.as_json()
    job.queued_at, job.cluster = now, None
    _switch(job, False)
    job.waited = timeline.enter_owner(job.waited, timeline.Owner.QUEUE, now)
    job.waited_codes = waited_codes.enter_code(job.waited_codes, before, job.reason, now)
    job.save(
        update_fields=["state", "suspended", "reason", "waited", "waited_codes", "queued_at", "cluster", "manifest"]
    )
    shares.stop(job, now)
    works.withdraw(job, now)
    charges.release(now, [job.uid])
    record_event(job, "Resumed", f"Resumed by {by}", now)
    announce_jobs([job], now)
    cycle_requests.request()
    return job


@transaction.atomic
def delete(job: Job, *, by: str, now: datetime) -> bool:
    """Removes the job and its copies; True when nothing was left to wait for."""
    job = _locked(job, Action.DELETE)
    reason = Reason(Code.DELETING, f"deleted by {by}; its copies are being removed")
    job.deleting_at, job.reason = now, reason.as_json()
    job.save(update_fields=["deleting_at", "reason"])
    works.end_attempt(job, Outcome.DELETED, f"deleted by {by}", now)
    left = works.withdraw(job, now)
    record_event(job, "Deleting", f"Deleted by {by}", now)
    announce_jobs([job], now)
    return left == 0 and failover.finish_deletion(job, now)


@transaction.atomic
def delete_policy(policy: Policy, *, by: str, now: datetime) -> None:
    """Jobs that are placed run on under it as it was; waiting ones wait for another policy to claim them."""
    live = Job.objects.filter(policy=policy, deleting_at__isnull=True).exclude(state__in=Job.FINISHED)
    waiting = list(live.filter(state__in=Job.WAITING))
    placed = live.exclude(state__in=Job.WAITING).count()
    deleted = change(policy, journal.Action.DELETED)
    if placed or waiting:
        message = (
            f"{by} deleted it: until another policy selects them, {placed} placed jobs keep it as it was, and"
            f" {len(waiting)} waiting ones do not start"
        )
        events.record(change(policy), "PolicyDeletedInUse", message, now, warning=True)
    Binding.objects.filter(job__in=live).update(former_policy=policy.manifest)
    policy.delete()
    events.announce([deleted], now)
    for job in waiting:
        job.policy = None
    announce_jobs(waiting, now)
    cycle_requests.request()


@transaction.atomic
def delete_dependent(dependent: Dependent, *, by: str, now: datetime) -> None:
    """Copies that were sent with a job stay with it until the last job that refers to them is gone."""
    require_may_move_nodes(dependent.kind, dependent.namespace, dependent.name, by)
    deletion = change(dependent, journal.Action.DELETED)
    dependent.delete()
    events.announce([deletion], now)


def require_may_move_nodes(kind: str, namespace: str, name: str, by: str) -> None:
    """The table of switches says for all tenants where nodes are, in whatever namespace it stands."""
    if snapshot_topology.concerns(kind, namespace, name):
        user = access.user_named(by)
        if user is not None and not access.is_fleet_admin(user):
            raise Forbidden(
                f"{kind} {namespace}/{name} says where the nodes of all tenants are: a fleet admin writes it"
            )


def _locked(job: Job, action: Action) -> Job:
    fresh = Job.objects.select_for_update(no_key=True).filter(pk=job.pk).first()
    if fresh is None:
        raise Conflict(f"{job} is gone")
    if why := allowed(fresh, action):
        raise Conflict(f"{job} cannot be {action}d: {why}" if action is not Action.SUSPEND else f"{job}: {why}")
    return fresh


def _switch(job: Job, on: bool) -> None:
    """Keeps the submitted manifest's own suspend switch in step with the job."""
    registry.kind_of(job.api_version, job.kind).suspend(job.manifest, on)
