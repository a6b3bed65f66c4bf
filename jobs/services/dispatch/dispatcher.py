"""Does in a member what a work says: send the copy, suspend it, remove it.

claim → call the member, outside any transaction → record under the claim. A worker may die at any line: before the call,
nothing happened; after it, the next one finds the copy and records it. A work whose state was changed meanwhile (the job was
deleted, suspended, moved) is not recorded as sent; the change enqueued the next push.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from time import perf_counter
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from structlog import get_logger

from fleet.changes import events
from fleet.core.members.health import UNJUDGED
from fleet.db import prepared
from fleet.db.prepared import JSON, NUMBER, TEXT, UID, Param
from fleet.kube.resources import RESERVATIONS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberChanged, MemberMissing, MemberRefused
from fleet.models import Cluster, Identity
from fleet.services.authorization import namespace_policies
from fleet.services.clusters import circuits, pictures
from fleet.services.members import event_handlers, member_clients
from jobs import metrics, tracing
from jobs.core.division import shares as parts
from jobs.core.failover.lifecycle import grace_s
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.policies.overrides_apply import CannotOverride
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs, announce_works, job_event, record_event
from jobs.kinds import gangs, registry
from jobs.kinds.base import Kind, Manifest, Phase, Role
from jobs.models import Job, Work
from jobs.services.dispatch import (
    dependents,
    member_namespaces,
    member_objects,
    member_queues,
    overrides,
    reservations,
    service_accounts,
    stopping,
    topology,
    unreached,
)
from jobs.services.dispatch.member_objects import NotYet, Observer, Superseded
from jobs.services.dispatch.member_queues import QueueClosed
from jobs.services.dispatch.reservations import CannotReserve
from jobs.services.dispatch.service_accounts import AccountLacksRights
from jobs.services.failover import division, failover
from jobs.services.lifecycle import (
    charges,
    cycle_requests,
    provenance,
    transitions,
    volume_claims,
    workload_policy,
    works,
)
from jobs.services.lifecycle.locks import lock_owners
from jobs.services.lifecycle.volume_claims import DataElsewhere
from jobs.services.lifecycle.workload_policy import PolicyViolated
from jobs.services.lifecycle.works import ClaimLost
from jobs.services.scheduling import loop
from jobs.snapshot import spec_of

log = get_logger(__name__)

State = Work.State
_NO_FAULT = ("done", "NotYet")
"""Results of a try that are not shown as an error in its trace."""
Clock = Callable[[], datetime]


def _sending(param: Param) -> tuple[QuerySet[Job], dict[str, Any]]:
    rows = Job.objects.filter(uid=param("uid", UID), attempt=param("attempt", NUMBER), state=Job.State.PLACED)
    reason = {"reason": param("reason", JSON), "reason_code": param("code", TEXT)}
    return transitions.job_move(rows, JobEvent.SENT, **reason)


_JOB = prepared.Rows(lambda param: Job.objects.select_related("policy").filter(uid=param("uid", UID)))
_SENT = prepared.Update(_sending)


def push(pk: int, clock: Clock) -> bool:
    """One try at one work, which need not work out, for what is left will be tried again; False when there was none to make."""
    work = works.claim(pk, clock())
    if work is None:
        return False
    job = next(iter(_JOB.objects(uid=work.job_uid)), None)
    began = perf_counter()
    with ExitStack() as broken:
        broken.callback(lambda: works.give_back(work, clock(), message="an error of Convoy's own, in the worker's log"))
        span = tracing.dispatching(job, work)
        broken.callback(span.end, "an error of Convoy's own")
        result = _dispatch_one(work, job, clock)
        broken.pop_all()
    span.end("" if result in _NO_FAULT else result, result=result)
    metrics.DISPATCH_SECONDS.labels(work.cluster.name, result).observe(perf_counter() - began)
    return True


def _dispatch_one(work: Work, job: Job | None, clock: Clock) -> str:
    """How it went, in a word; a work that was not done is given back."""
    known = {"verb": work.state, "job": _named(work), "attempt": work.attempt, "cluster": work.cluster.name}
    try:
        _act_on_state(work, job, clock)
    except ClaimLost:
        log.warning("dispatch claim lost", **known)
        works.give_back(work, clock(), wait_s=0)
        return "ClaimLost"
    except (MemberAway, MemberChanged, NotYet) as e:
        write = log.info if isinstance(e, NotYet) else log.warning
        write("dispatch failed", error=str(e), **known)
        _wait(work, str(e), clock())
        if job is not None and work.state in (State.PENDING, State.SENDING):
            _record_event(job, work, Code.WAITING_FOR_MEMBER, f"{work.cluster.name} does not take it yet: {e}", clock())
        if isinstance(e, MemberAway) and not e.status:
            unreached.record(work, e, clock())
        else:
            _after_contact(work, clock())
        return type(e).__name__
    _after_contact(work, clock())
    return "done"


def _after_contact(work: Work, now: datetime) -> None:
    """A dispatch that waits for something else has asked nothing of the member, and says nothing about it."""
    if work.is_answered:
        circuits.answered(work.cluster, now)
    elif work.cluster.circuit_opened_at is not None:
        circuits.no_contact(work.cluster, now)


def _named(work: Work) -> str:
    return f"{work.kind}/{work.namespace}/{work.name}"


@transaction.atomic
def _wait(work: Work, message: str, now: datetime) -> None:
    works.give_back(work, now, message=message)
    if work.message != message[:500]:
        announce_works([work], now)


def _client(work: Work, clock: Clock) -> MemberClient:
    """The member's API, to which nothing is written once the claim is lost."""

    def answered() -> None:
        work.is_answered = True

    return member_clients.client(work.cluster).fenced(lambda: works.renew(work, clock()), answered)


def _act_on_state(work: Work, job: Job | None, clock: Clock) -> None:
    if work.state == State.WITHDRAWING or job is None:
        _withdraw(work, job, clock)
    elif work.state == State.SUSPENDING:
        _suspend(work, job, clock)
    elif pictures.is_overtaken(work.cluster, work.created_at, clock()):
        raise NotYet(f"it was placed before the watcher paused, and {work.cluster.name} has to be seen first")
    elif work.state == State.SENDING or _may_be_sent(work, job, clock()):
        _send(work, job, clock)


def _may_be_sent(work: Work, job: Job, now: datetime) -> bool:
    """Not while an older copy may still run where we could remove it (invariant I4); else the work is now being sent.

    A copy on a cluster that cannot be reached blocks no other: it is fenced by its older attempt number. One on a cluster that
    is out of sight through a fault of ours most likely runs, and blocks, unless a person has drained that cluster.
    """
    blocker = _older_copy(work, job) if work.attempt > 1 else None
    if blocker is not None:
        works.give_back(work, now, wait_s=2.0)
        gone = f"attempt {blocker.attempt} is being removed from {blocker.cluster.name} first"
        if blocker.cluster.state_reason in UNJUDGED:
            gone += f", which is {blocker.cluster.state} ({blocker.cluster.state_reason})"
        _record_event(job, work, Code.WAITING_FOR_PURGE, gone, now)
        return False
    with transaction.atomic():
        if works.advance(work, WorkEvent.BEGUN, marked=True):
            work.marked = True
            announce_works([work], now)
            return True
    works.give_back(work, now, wait_s=0)
    return False


def _older_copy(work: Work, job: Job) -> Work | None:
    """A copy of an earlier attempt that may still run, and blocks this one."""
    older = Work.objects.filter(job_uid=work.job_uid, attempt__lt=work.attempt)
    older = older.exclude(state__in=[State.GONE, State.KEPT])
    older = older.exclude(attempt__in=parts.counting(job.shares, job.attempt))
    older = older.select_related("cluster").defer("cluster__access")
    return next((copy for copy in older if copy.cluster_id == work.cluster_id or _may_run_on(copy.cluster)), None)


def _may_run_on(cluster: Cluster) -> bool:
    unseen = cluster.state_reason in UNJUDGED and not cluster.drained
    return unseen or cluster.state == Cluster.State.READY


def _send(work: Work, job: Job, clock: Clock) -> None:
    client = _client(work, clock)
    try:
        try:
            said = _create_copy(client, work, job, clock)
        except MemberMissing:
            member_namespaces.create(client, work.namespace, namespace_policies.profile(work.namespace))
            said = _create_copy(client, work, job, clock)
    except (AccountLacksRights, CannotOverride, CannotReserve, PolicyViolated, QueueClosed, Superseded) as e:
        _refused(work, job, f"not sent to {work.cluster.name}: {e}", clock())
        return
    except DataElsewhere as e:
        _refused(work, job, f"not sent to {work.cluster.name}: it {e}", clock())
        return
    except MemberRefused as e:
        _refused(work, job, f"{work.cluster.name} refused the job: {member_objects.refused(e)}", clock())
        return
    _mark_sent(work, job, clock(), said)


def _create_copy(client: MemberClient, work: Work, job: Job, clock: Clock) -> Sequence[str]:
    """The copy with all it needs, or what is missing of it; the override policies that it was written by."""
    spec = spec_of(job)
    kind = registry.kind_of(work.api_version, work.kind)
    uid, attempt = str(work.job_uid), work.attempt
    written, said = overrides.manifest(job, kind, work.cluster)
    # Before anything is made in the member: what may not run there needs nothing there.
    profile = workload_policy.require(work.namespace, written)
    member_namespaces.follow(client, work.cluster, work.namespace, profile)
    if spec.propagate_deps:
        rows = dependents.dependents_of(job)
        volume_claims.bind(job, work.cluster, rows, clock(), anywhere=spec.data_anywhere)
        dependents.send(client, rows)
    body = member_objects.manifest(kind, written, member_objects.labels(Identity.here(), uid, attempt))
    provenance.put_marks(kind, body, work)
    service_accounts.check(member_clients.client(work.cluster), kind, body)
    share = division.share_of(job, attempt)
    if share is not None:
        kind.set_replicas(body, share.replicas, share.completions)
    topology.write(client, kind, body, job, work)
    if reservations.asked(work.cluster, spec.fit):
        pods = share.replicas if share else None
        roles = [Role(role["name"], pods or role["replicas"], role["request"]) for role in job.roles]
        reservations.secure_reservations(client, work.cluster, kind, body, roles, now=clock())
    group = gangs.bind(kind, body, kind.read(body if share else job.manifest), work.cluster.serves)
    member_queues.join(client, work.cluster, job.leaf, body, *([group[1]] if group else []))
    for resource, companion in (*([group] if group else []), *kind.companions(body)):
        member_objects.create(client, resource, companion, uid, attempt)
    made = member_objects.create(client, kind.resource, body, uid, attempt, overwrite=spec.overwrite)
    work.object_uid = str(made["metadata"].get("uid") or "")
    return said


@transaction.atomic
def _mark_sent(work: Work, job: Job, now: datetime, overridden_by: Sequence[str]) -> None:
    lock_owners([work.job_uid])
    done = {"claim": "", "claimed_at": None, "tries": 0, "message": ""}
    recorded = works.advance(work, WorkEvent.SENT, applied_at=now, object_uid=work.object_uid, **done)
    if not recorded:
        works.give_back(work, now, wait_s=0)
        return
    waited = (now - work.created_at).total_seconds()
    metrics.PLACED_TO_SENT_SECONDS.labels(work.cluster.name).observe(waited)
    if job.shares:
        if division.sent(job, work.attempt, now):
            events.record_all(_sent_lines(work, job, overridden_by), now)
        announce_works([work], now)
        return
    pods = sum(role["replicas"] for role in job.roles)
    reason = Reason(Code.WAITING_FOR_PODS, f"{work.cluster.name} has the job; 0 of {pods} pods run")
    said = {"reason": reason.as_json(), "code": reason.code}
    if _SENT.run(uid=work.job_uid, attempt=work.attempt, **said):
        announce_jobs([job], now, (), _sent_lines(work, job, overridden_by))  # lines that name the attempt are new
    announce_works([work], now)


def _sent_lines(work: Work, job: Job, overridden_by: Sequence[str]) -> list[events.Line]:
    cluster = work.cluster.name
    lines = [job_event(job, "SyncWorkSucceed", f"Sent to {cluster} as attempt {work.attempt}")]
    if overridden_by:
        message = f"Written for {cluster} as {', '.join(overridden_by)} says"
        lines.append(job_event(job, "ApplyOverridePolicySucceed", message))
    return lines


@transaction.atomic
def _refused(work: Work, job: Job, message: str, now: datetime) -> None:
    """What was made before the no is removed again; the job looks for another cluster."""
    log.warning("member refused", job=_named(work), attempt=work.attempt, cluster=work.cluster.name, error=message)
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
    kind, client = registry.kind_of(work.api_version, work.kind), _client(work, clock)
    try:
        there = member_objects.suspend(
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
        raise NotYet(member_objects.refused(e)) from e
    if there and not kind.ends_pods:
        if _waits_for_pods(client, kind, work, job, clock):
            return
        there = False
    if not there:
        # Recorded as suspended, a copy that a late sender makes after this would be one that is meant to be there.
        if works.advance(work, WorkEvent.NOTHING_TO_SUSPEND):
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
    """Ends the pods of a suspended copy whose operator does not; True while some of them still save their work."""
    now = clock()
    grace = grace_s(job.manifest, kind.templates(job.manifest))
    progress = stopping.stop(client, kind, work, grace, now)
    with transaction.atomic():
        if progress.deleted:
            message = (
                f"{progress.deleted} pods of attempt {work.attempt} are to end and have {grace:g} s to save their work"
            )
            record_event(job, "StoppingPods", message, now)
        if progress.left:
            works.give_back(work, now, message=f"{progress.left} pods still save their work", wait_s=stopping.AGAIN_S)
            return True
    report = _success_reporter(work, job, kind, clock)
    member_objects.remove(client, kind.resource, work.namespace, work.name, str(work.job_uid), work.attempt, report)
    stopping.end_the_last(client, kind, work)
    return False


def _success_reporter(work: Work, job: Job | None, kind: Kind, clock: Clock) -> Observer:
    """Reports a copy that has succeeded as the watcher would, which may see it later or only after its removal.

    Stopped unreported, the job would run a second time. A work that has nothing to stop any more has another state after
    the report, and its claimant writes nothing to the member (`works.renew`).
    """

    if job is None or job.finished or job.deleting_at is not None:
        return member_objects.ignore

    def report(copy: Manifest) -> None:
        if kind.read_status(copy.get("status") or {}, 0).phase is Phase.SUCCEEDED:
            for handler in event_handlers.registered():
                handler.on_update(work.cluster_id, kind.resource, [copy], clock())

    return report


def _withdraw(work: Work, job: Job | None, clock: Clock) -> None:
    kind = registry.kind_of(work.api_version, work.kind)
    client, uid = _client(work, clock), str(work.job_uid)
    try:
        report = _success_reporter(work, job, kind, clock)
        gone = member_objects.remove(client, kind.resource, work.namespace, work.name, uid, work.attempt, report)
        if not gone:
            raise NotYet(f"{work.cluster.name} is still removing it")
        if work.cluster.serves(RESERVATIONS.api_version, RESERVATIONS.kind):
            reservations.remove(client, uid, work.attempt)
        for beside in (*gangs.GROUPS, *kind.companion_resources):
            if work.cluster.serves(beside.api_version, beside.kind):
                member_objects.remove(client, beside, work.namespace, work.name, uid, work.attempt)
        if job is not None:
            names = dependents.no_longer_needed(job, work)
            for claim in dependents.remove(client, job, names):
                volume_claims.forget(job.namespace, claim.name, work.cluster, clock())
    except MemberMissing as e:
        raise NotYet(e.message) from e
    except MemberRefused as e:
        raise NotYet(member_objects.refused(e)) from e
    _mark_gone(work, clock())


@transaction.atomic
def _mark_gone(work: Work, now: datetime) -> None:
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


def _record_event(job: Job, work: Work, code: Code, message: str, now: datetime) -> None:
    """Writes why the job is not running yet, when that changed."""
    reason = Reason(code, message).as_json()
    number = job.attempt if work.attempt in parts.counting(job.shares, job.attempt) else work.attempt
    current = Job.objects.filter(pk=job.pk, attempt=number, state=Job.State.PLACED)
    if (job.reason or {}).get("message") == message:
        return
    with transaction.atomic():
        if current.update(reason=reason):
            job.reason = reason
            announce_jobs([job], now)
