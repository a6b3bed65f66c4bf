"""Carries out one work in its member: sends the copy of the job, suspends it, or removes it.

The steps are: claim the work, call the member outside any transaction, record the result under the claim. A worker may die at
any line. If it dies before the call, nothing has happened; if it dies after the call, the next worker finds the copy in the
member and records it. When the state of the work changes during the call (the job was deleted, suspended or moved), the work
is not recorded as sent; that change has already enqueued the next push.
"""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from structlog import get_logger

from fleet.changes import events
from fleet.core.members import fence
from fleet.db import prepared
from fleet.db.prepared import JSON, NUMBER, TEXT, UID, Param
from fleet.kube.resources import RESERVATIONS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberChanged, MemberMissing, MemberRefused
from fleet.models import Cluster, Identity
from fleet.services.authorization import namespace_policies
from fleet.services.members import event_handlers, impersonation, member_clients
from jobs import metrics, tracing
from jobs.core.failover.lifecycle import grace_s
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.policies.overrides_apply import CannotOverride
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, announce_works, record_event
from jobs.kinds import gangs, registry
from jobs.kinds.base import Kind, Manifest, Phase, Role, set_metadata
from jobs.models import Job, Work
from jobs.runtime import facts
from jobs.services.dispatch import unreached
from jobs.services.dispatch.copies import overrides, preserved_state, progress_reports, resizing, sent_events, topology
from jobs.services.dispatch.copies.node_checks import add_check, send_check
from jobs.services.dispatch.copies.sent_events import Notes
from jobs.services.dispatch.members import (
    dependents,
    last_logs,
    lost_pods,
    member_namespaces,
    member_objects,
    member_queues,
    reservations,
    service_accounts,
    stopping,
)
from jobs.services.dispatch.members.member_objects import NotYet, Observer, Superseded
from jobs.services.dispatch.members.member_queues import QueueClosed
from jobs.services.dispatch.members.reservations import CannotReserve
from jobs.services.dispatch.members.service_accounts import AccountLacksRights
from jobs.services.failover import division, failover
from jobs.services.lifecycle import cycle_requests, sizes, transitions, volume_claims, workload_policy, works
from jobs.services.lifecycle.accounting import charges
from jobs.services.lifecycle.copies import fences, provenance
from jobs.services.lifecycle.locks import lock_owners
from jobs.services.lifecycle.volume_claims import DataElsewhere
from jobs.services.lifecycle.workload_policy import PolicyViolated
from jobs.services.lifecycle.works import ClaimLost
from jobs.services.scheduling import loop
from jobs.snapshot import spec_of

log = get_logger(__name__)

State = Work.State
_NO_FAULT = ("done", "NotYet")
"""Results of a dispatch that its trace does not show as errors."""
Clock = Callable[[], datetime]


def _sending(param: Param) -> tuple[QuerySet[Job], dict[str, Any]]:
    rows = Job.objects.filter(uid=param("uid", UID), attempt=param("attempt", NUMBER), state=Job.State.PLACED)
    reason = {"reason": param("reason", JSON), "reason_code": param("code", TEXT)}
    return transitions.job_move(rows, JobEvent.SENT, **reason)


_JOB = prepared.Rows(lambda param: Job.objects.select_related("policy").filter(uid=param("uid", UID)))
_SENT = prepared.Update(_sending)


def push(pk: int, clock: Clock) -> bool:
    """Tries to carry out one work. Returns False when it is not due, or another worker has claimed it.

    A failed try is not an error: the work is released and becomes due again later.
    """
    work = works.claim(pk, clock())
    if work is None:
        return False
    job = next(iter(_JOB.objects(uid=work.job_uid)), None)
    began = perf_counter()
    with ExitStack() as on_error:
        on_error.callback(
            lambda: works.give_back(work, clock(), message="internal error of Convoy; see the worker's log")
        )
        span = tracing.dispatching(job, work)
        on_error.callback(span.end, "internal error")
        result = _dispatch_one(work, job, clock)
        on_error.pop_all()
    span.end("" if result in _NO_FAULT else result, result=result)
    metrics.DISPATCH_SECONDS.labels(work.cluster.name, result).observe(perf_counter() - began)
    return True


def _dispatch_one(work: Work, job: Job | None, clock: Clock) -> str:
    """Carries out the work, or releases it to be tried again. Returns "done" or the name of the error, as metrics have it."""
    fields = {"verb": work.state, "job": _job_name(work), "attempt": work.attempt, "cluster": work.cluster.name}
    try:
        _act_on_state(work, job, clock)
    except ClaimLost:
        log.warning("dispatch claim lost", **fields)
        works.give_back(work, clock(), wait_s=0)
        return "ClaimLost"
    except (MemberAway, MemberChanged, NotYet) as e:
        write = log.info if isinstance(e, NotYet) else log.warning
        write("dispatch failed", error=str(e), **fields)
        if not _wait(work, e, clock()):
            return "ClaimLost"
        if job is not None and work.state in (State.PENDING, State.SENDING):
            unreached.record_reason(
                job, work, Code.WAITING_FOR_MEMBER, unreached.message(work.cluster, str(e)), clock()
            )
        if isinstance(e, MemberAway) and not e.status:
            unreached.record(work, e, clock())
        else:
            unreached.after_contact(work, clock())
        return type(e).__name__
    unreached.after_contact(work, clock())
    return "done"


def _job_name(work: Work) -> str:
    return f"{work.kind}/{work.namespace}/{work.name}"


@transaction.atomic
def _wait(work: Work, error: Exception, now: datetime) -> bool:
    """Returns False if the claim was lost: then what was seen says nothing any more."""
    message, wait_s = str(error), error.wait_s if isinstance(error, NotYet) else None
    if not works.give_back(work, now, message=message, wait_s=wait_s):
        return False
    if work.message != message[:500]:
        announce_works([work], now)
    return True


def _client(work: Work, clock: Clock) -> MemberClient:
    """A client of the member that raises `ClaimLost` before a write once the claim of the work is lost."""

    def answered() -> None:
        work.answered_at = clock()

    return member_clients.client(work.cluster).fenced(lambda: works.renew(work, clock()), answered)


def _act_on_state(work: Work, job: Job | None, clock: Clock) -> None:
    if work.state == State.WITHDRAWING or job is None:
        _withdraw(work, job, clock)
    elif work.state == State.SUSPENDING:
        _suspend(work, job, clock)
    elif work.state == State.APPLIED:
        resizing.carry_out(_client(work, clock), work, job, clock)
    elif why_not := unreached.reason_not_to_send(work, job, clock()):
        raise NotYet(why_not)
    elif work.state == State.SENDING or _may_be_sent(work, job, clock()):
        _send(work, job, clock)


def _may_be_sent(work: Work, job: Job, now: datetime) -> bool:
    """Moves the work to state Sending and returns True, unless a copy of an older attempt may still run (invariant I4).

    A copy on an unreachable cluster does not block, unless the policy waits (`fences.may_run`): its older attempt number fences
    it. One on a cluster that Convoy cannot judge because of a fault of its own probably still runs, and blocks unless drained.
    """
    may_run = partial(fences.may_run, job, now=now)
    blocker = works.older_copy(work, job, may_run=may_run) if work.attempt > 1 else None
    if blocker is not None:
        works.give_back(work, now, wait_s=2.0)
        message = f"attempt {blocker.attempt} is being removed from {blocker.cluster.name} first"
        if blocker.cluster.state != Cluster.State.READY:
            message += f", which is {blocker.cluster.state} ({blocker.cluster.state_reason})"
        unreached.record_reason(job, work, Code.WAITING_FOR_PURGE, message, now)
        return False
    with transaction.atomic():
        fenced = fences.is_wanted(job, work.cluster, now)
        if works.advance(work, WorkEvent.BEGUN, marked=True, fenced=fenced):
            work.marked, work.fenced = True, fenced
            announce_works([work], now)
            return True
    works.give_back(work, now, wait_s=0)
    return False


def _send(work: Work, job: Job, clock: Clock) -> None:
    client = _client(work, clock)
    try:
        try:
            notes = _create_copy(client, work, job, clock)
        except MemberMissing:
            member_namespaces.create(client, work.namespace, namespace_policies.profile(work.namespace))
            notes = _create_copy(client, work, job, clock)
    except (AccountLacksRights, CannotOverride, CannotReserve, PolicyViolated, QueueClosed, Superseded) as e:
        _mark_refused(work, job, f"not sent to {work.cluster.name}: {e}", clock())
        return
    except DataElsewhere as e:
        _mark_refused(work, job, f"not sent to {work.cluster.name}: it {e}", clock())
        return
    except MemberRefused as e:
        _mark_refused(work, job, f"{work.cluster.name} refused the job: {member_objects.refusal_text(e)}", clock())
        return
    _mark_sent(work, job, clock(), notes)


def _create_copy(client: MemberClient, work: Work, job: Job, clock: Clock) -> Notes:
    """Creates the copy with what it needs, unless the member has it. Returns how the copy differs from the job's manifest."""
    spec = spec_of(job)
    kind = registry.kind_of(work.api_version, work.kind)
    uid, attempt = str(work.job_uid), work.attempt
    written, policies = overrides.manifest(job, kind, work.cluster)
    author = impersonation.in_name_of_author(client, work.cluster, job.submitted_by)
    # Before anything is created in the member: a job that the policy forbids leaves nothing behind.
    profile = workload_policy.require(work.namespace, written)
    member_namespaces.follow(client, work.cluster, work.namespace, profile)
    propagated = dependents.dependents_of if spec.propagate_deps else dependents.counted_of
    rows = propagated(job, work.cluster)
    dependents.require_as_counted(client, job, rows)
    if rows:
        volume_claims.bind(work, job, rows, clock(), anywhere=spec.data_anywhere)
        dependents.send(client, rows, author)
    body = member_objects.manifest(kind, written, member_objects.labels(Identity.here(), uid, attempt))
    provenance.put_marks(kind, body, work)
    if work.fenced:
        set_metadata(body, "labels", {fence.LABEL: fence.DEPENDS})
    service_accounts.check(member_clients.client(work.cluster), kind, body)
    unreported, report_secret = progress_reports.write(client, kind, body, job, work, clock())
    handed_over = preserved_state.write(kind, body, job, work, spec.state_rules)
    share = division.share_of(job, attempt)
    if share is not None:
        kind.set_replicas(body, share.replicas, share.completions)
    rank_lists = topology.write(client, kind, body, job, work)
    unchecked, check = add_check(kind, body, work, clock(), is_share=share is not None)
    kind.keep_to_nodes(body, work.node_labels or {})
    if work.avoided_nodes:
        kind.keep_off_nodes(body, work.avoided_nodes)
    if reservations.required(work.cluster, spec.fit):
        pods = share.replicas if share else None
        roles = [Role(role["name"], pods or role["replicas"], role["request"]) for role in job.roles]
        reservations.secure_reservations(client, work.cluster, kind, body, roles, now=clock())
    # The pod group and the companions come before the job, whose pods refer to them from the moment they are created.
    reading, scheduler = (
        kind.read(body if share else job.manifest),
        work.cluster.annotations.get(gangs.GANG_SCHEDULER, ""),
    )
    group = gangs.bind(kind, body, reading, work.cluster.serves, scheduler)
    member_queues.join(client, work.cluster, job.leaf, body, *([group[1]] if group else []))
    for resource, companion in (*([group] if group else []), *kind.companions(body)):
        member_objects.create(client, resource, companion, uid, attempt, author=author)
    created = member_objects.create(client, kind.resource, body, uid, attempt, overwrite=spec.overwrite, author=author)
    topology.hand_over(client, author, created, kind.resource, rank_lists, work)
    send_check(client, created, check, work)
    work.object_uid = str(created["metadata"].get("uid") or "")
    if report_secret:
        progress_reports.send(client, report_secret, created, work)
    return sent_events.notes(job, work, policies, handed_over, unreported, unchecked)


@transaction.atomic
def _mark_sent(work: Work, job: Job, now: datetime, notes: Notes) -> None:
    lock_owners([work.job_uid])
    released = {"claim": "", "claimed_at": None, "tries": 0, "message": ""}
    recorded = works.advance(work, WorkEvent.SENT, applied_at=now, object_uid=work.object_uid, **released)
    if not recorded:
        works.give_back(work, now, wait_s=0)
        return
    if facts.are_written(job.kind, job.manifest):
        works.follow_runtime(work, now)
    waited = (now - work.created_at).total_seconds()
    metrics.PLACED_TO_SENT_SECONDS.labels(work.cluster.name).observe(waited)
    if job.shares:
        if division.sent(job, work.attempt, now):
            events.record_all(sent_events.lines(job, work, notes), now)
        announce_works([work], now)
        return
    pods = sizes.pods_of(job)
    reason = Reason(Code.WAITING_FOR_PODS, f"{work.cluster.name} has the job; 0 of {pods} pods run")
    if _SENT.run(uid=work.job_uid, attempt=work.attempt, reason=reason.as_json(), code=reason.code):
        announce_jobs([job], now, (), sent_events.lines(job, work, notes))
    announce_works([work], now)


@transaction.atomic
def _mark_refused(work: Work, job: Job, message: str, now: datetime) -> None:
    """Records that the job cannot be sent: the job is requeued for another cluster, and the work removes what was created."""
    log.warning("member refused", job=_job_name(work), attempt=work.attempt, cluster=work.cluster.name, error=message)
    lock_owners([work.job_uid])
    if not works.advance(work, WorkEvent.REFUSED, message=message[:500]):
        works.give_back(work, now, wait_s=0)
        return
    works.give_back(work, now, message=message, wait_s=0)
    reason = Reason(Code.MEMBER_REFUSED, message)
    if job.shares:
        division.leave(job, work.attempt, Outcome.REFUSED, reason, now)
    elif failover.is_current(job, work):
        record_event(job, "SyncWorkFailed", message, now, warning=True)
        failover.leave(job, Outcome.REFUSED, reason, now)
    announce_works([work], now)


def _suspend(work: Work, job: Job, clock: Clock) -> None:
    last_logs.keep(work, clock)
    kind, client = registry.kind_of(work.api_version, work.kind), _client(work, clock)
    try:
        exists = member_objects.suspend(
            client,
            kind.resource,
            kind,
            work.namespace,
            work.name,
            str(work.job_uid),
            work.attempt,
            _success_reporter(work, job, kind, clock),
        )
    except MemberRefused as e:
        raise NotYet(member_objects.refusal_text(e)) from e
    if exists and not kind.ends_pods:
        if _waits_for_pods(client, kind, work, job, clock):
            return
        exists = False
    if not exists:
        # There is no copy to suspend, so the work withdraws instead. A delayed sender may still create one: in state
        # Suspended it would stay, while a work that withdraws removes it.
        if works.advance(work, WorkEvent.NOTHING_TO_SUSPEND, tries=0):
            work.tries = 0
            _withdraw(work, job, clock)
        else:
            works.give_back(work, clock(), wait_s=0)
        return
    with transaction.atomic():
        lock_owners([work.job_uid])
        if works.advance(work, WorkEvent.SUSPENDED, claim="", claimed_at=None, tries=0, message=""):
            works.release_hold(work.job_uid, work.attempt, clock())
            charges.release(clock(), [work.job_uid])
            loop.advance_evictions(clock(), [work.job_uid])
            cycle_requests.request()
            announce_works([work], clock())
        else:
            works.give_back(work, clock(), wait_s=0)


def _waits_for_pods(client: MemberClient, kind: Kind, work: Work, job: Job, clock: Clock) -> bool:
    """Ends the pods of a suspended copy whose operator does not do so. True while pods are still saving their work.

    When all have ended, the copy is removed.
    """
    now = clock()
    grace = grace_s(job.manifest, kind.templates(job.manifest))
    progress = stopping.stop(client, kind, work, grace, now)
    with transaction.atomic():
        if progress.deleted:
            message = (
                f"Stopping {progress.deleted} pods of attempt {work.attempt}: they have {grace:g} s to save their work"
            )
            record_event(job, "StoppingPods", message, now)
        if progress.remaining:
            message = f"{progress.remaining} pods are still saving their work"
            works.give_back(work, now, message=message, wait_s=stopping.POLL_S)
            return True
    report = _success_reporter(work, job, kind, clock)
    member_objects.remove(client, kind.resource, work.namespace, work.name, str(work.job_uid), work.attempt, report)
    # After the copy is marked for removal: its operator would replace these pods before.
    stopping.end_last_role(client, kind, work)
    return False


def _success_reporter(work: Work, job: Job | None, kind: Kind, clock: Clock) -> Observer:
    """Returns a callback that keeps the state of a copy, and reports it if it has succeeded, before the watcher does.

    If such a copy were stopped without a report, the job would run a second time. The report moves the work to another state,
    so that the claim is lost and nothing is stopped (`works.renew`).
    """
    if job is None or job.finished or job.deleting_at is not None:
        return member_objects.ignore

    def report(copy: Manifest) -> None:
        # What a worker read that was paused since is older than what the next one has kept.
        works.renew(work, clock())
        preserved_state.keep_last(job, work, copy, clock())
        if kind.read_status(copy.get("status") or {}, 0).phase is Phase.SUCCEEDED:
            for handler in event_handlers.registered():
                handler.on_update(work.cluster_id, kind.resource, [copy], clock())

    return report


def _withdraw(work: Work, job: Job | None, clock: Clock) -> None:
    last_logs.keep(work, clock)
    kind = registry.kind_of(work.api_version, work.kind)
    client, uid = _client(work, clock), str(work.job_uid)
    try:
        report = _success_reporter(work, job, kind, clock)
        removed = member_objects.remove(client, kind.resource, work.namespace, work.name, uid, work.attempt, report)
        # The job first: while it exists, its operator would use or create again what is removed below.
        if not removed:
            raise lost_pods.remove(client, work, job, clock())
        if work.cluster.serves(RESERVATIONS.api_version, RESERVATIONS.kind):
            reservations.remove(client, uid, work.attempt)
        for companion in (*gangs.GROUPS, *kind.companion_resources):
            if work.cluster.serves(companion.api_version, companion.kind):
                member_objects.remove(client, companion, work.namespace, work.name, uid, work.attempt)
        if job is not None:
            names = dependents.no_longer_needed(job, work)
            for claim in dependents.remove(client, job, names):
                volume_claims.forget(work, job, claim.name, clock())
    except MemberMissing as e:
        raise NotYet(e.message) from e
    except MemberRefused as e:
        raise NotYet(member_objects.refusal_text(e)) from e
    _mark_removed(work, clock())


@transaction.atomic
def _mark_removed(work: Work, now: datetime) -> None:
    lock_owners([work.job_uid])
    fields = {"claim": "", "claimed_at": None, "message": ""}
    if work.state == State.WITHDRAWING:
        done = works.advance(work, WorkEvent.REMOVED, **fields)
    else:
        ours = Work.objects.filter(pk=work.pk, claim=work.claim)
        done = bool(transitions.move_works(ours, WorkEvent.JOB_FORGOTTEN, **fields))
    if not done:
        works.give_back(work, now, wait_s=0)
        return
    works.release_hold(work.job_uid, work.attempt, now)
    failover.after_removal(work, now)
    loop.advance_evictions(now, [work.job_uid])
    announce_works([work], now)
