"""Applies the status that members report for copies to the jobs.

`JobEventHandler` is called by the fleet's watcher with batches of objects and pods. A report is applied if it belongs to the
job's current attempt; the same report twice changes nothing. Other copies are removed (invariant I4).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from fleet.changes import events
from fleet.core.members.observed import Mark, ObservedRefusal
from fleet.db import isolation
from fleet.kube.resources import Resource
from fleet.models import Pod
from fleet.services.members import event_handlers
from jobs.core.division import shares as parts
from jobs.core.failover.causes import Cause
from jobs.core.failover.rules import Outcome
from jobs.core.life.jobs import JobEvent
from jobs.core.life.works import WorkEvent
from jobs.core.reasons import Code, Reason
from jobs.events import job_event
from jobs.kinds import registry
from jobs.kinds.base import FINISHED, Manifest, Phase, State
from jobs.models import Job, Work
from jobs.runtime.notices import StopRequest
from jobs.services.dispatch.members import service_accounts
from jobs.services.failover import crash_loops, division, evidence, failover, node_checks, returns
from jobs.services.follow import division_status, member_copies, notices, progress, refusals, runtime_facts, status_rows
from jobs.services.follow.division_status import PodsSeen
from jobs.services.follow.status_batch import Key, StatusBatch
from jobs.services.follow.status_rows import RunningPods
from jobs.services.follow.timeouts import fenced, health
from jobs.services.lifecycle import sizes, transitions, works
from jobs.services.lifecycle.accounting import charges
from jobs.services.lifecycle.copies import provenance, state_preservation
from jobs.services.lifecycle.locks import lock_owners
from jobs.services.scheduling import loop

_STOPPING = (Job.State.RECLAIMING, Job.State.SUSPENDED)
"""States in which only one report of a copy counts: that it had succeeded before it was stopped, or has all its steps."""
_FOLLOWED = (*Job.ON_MEMBER, *Job.WAITING, *_STOPPING)


class JobEventHandler:
    """The handler that the fleet's watcher calls with batches of a member's objects and pods."""

    def resources(self) -> list[Resource]:
        return [kind.resource for kind in registry.everything()]

    def pod_role(self, resource_kind: str, labels: dict[str, str]) -> tuple[str, int]:
        """Role and index of a pod whose owner is of that kind."""
        return registry.pod_role(labels)

    def account_needs(self) -> list[event_handlers.AccountNeeds]:
        return service_accounts.needs()

    def has_ended(self, resource: Resource, manifest: Manifest) -> bool:
        kind = registry.find(resource.api_version, resource.kind)
        return kind is not None and kind.read_status(manifest.get("status") or {}, 0).phase in FINISHED

    @transaction.atomic
    def on_update(self, cluster_id: int, resource: Resource, objects: Sequence[Manifest], now: datetime) -> set[Key]:
        copies, newer = member_copies.judge(cluster_id, resource, objects, now)
        # Jobs are locked before their pods are counted. Otherwise two batches could each write a state from an outdated count.
        jobs = {job.uid: job for job in status_rows.lock_jobs(uid for (uid, _), _ in (*copies, *newer))}
        copies += member_copies.adopt(cluster_id, resource, jobs, newer, now)
        fenced.note(cluster_id, copies, now)
        running = status_rows.count_running(cluster_id, jobs)
        failed = {key for key, copy in copies if key[0] in jobs and _has_newly_failed(jobs[key[0]], copy)}
        reports = [(jobs[uid], copy.get("status") or {}) for (uid, _), copy in copies if uid in jobs]
        status_rows.prefetch_related(reports, running.restarting)
        batch = StatusBatch(
            now, evidence.failures(failed) if failed else {}, crash_loops.rows(running.restarting), running.created
        )
        state_preservation.keep(cluster_id, _reports(jobs, copies), now)
        batch.timeline += notices.record(cluster_id, _whole(jobs, copies), now)
        progress.record(_whole(jobs, copies))
        batch.asked_to_stop = _asked_to_stop(jobs, copies, now)
        followed: set[Key] = set()
        for (uid, attempt), copy in copies:
            job = jobs.get(uid)
            if job is not None and _must_stop(job, copy):
                _stop_copy(job, attempt, cluster_id, now)
            if job is not None and division_status.counts(job, attempt, succeeded=_has_succeeded(job, copy)):
                division_status.report_copy(job, attempt, copy, _pods_seen(job, attempt, running, batch), batch)
            elif job is None or job.shares or job.attempt != attempt or not _is_expected(job, attempt, cluster_id):
                _apply_earlier_success(job, attempt, cluster_id, copy, batch)
                member_copies.remove(cluster_id, resource, copy, uid, attempt, now)
            else:
                _apply_status(job, copy.get("status") or {}, running[job.uid, attempt], batch)
                sizes.repair(job, copy, now)
                # Otherwise the job still has a charge that may end with its pods, which only `on_pods_changed` checks.
                if job.state in Job.ON_MEMBER or job.charge is None:
                    followed.add((uid, attempt))
        batch.write()
        return followed

    @transaction.atomic
    def on_delete(self, cluster_id: int, resource: Resource, objects: Sequence[Manifest], now: datetime) -> None:
        """Objects that were deleted in the member, by Convoy or by others."""
        # The last status comes first: a copy that had ended before its deletion ends its job, which then does not fail over.
        copies, _ = member_copies.judge(cluster_id, resource, objects, now)
        _apply_final_reports(cluster_id, copies, now)
        for key, _ in copies:
            _handle_missing_copy(cluster_id, key, now)

    def expected(self, cluster_id: int, resource: Resource) -> Collection[Key]:
        """The attempts whose copies were recorded as sent, which a list that is requested now has, whatever clocks say."""
        matching = Work.objects.filter(
            cluster_id=cluster_id,
            api_version=resource.api_version,
            kind=resource.kind,
            state__in=[Work.State.APPLIED, Work.State.WITHDRAWING],
        )
        return list(matching.values_list("job_uid", "attempt"))

    def on_resync(self, cluster_id: int, resource: Resource, missing: Collection[Key], now: datetime) -> None:
        """Handles copies that were deleted while no watch was open."""
        isolation.each("follow.resync", sorted(missing), lambda key: _handle_missing_copy(cluster_id, key, now), now)

    def on_refusals(self, cluster_id: int, refusals_: Sequence[ObservedRefusal], now: datetime) -> None:
        refusals.record(cluster_id, refusals_, now)

    def unmarked(self, cluster_id: int, claims: set[tuple[Mark, str]]) -> set[tuple[Mark, str]]:
        """Of pods without a valid signature, given by (mark, namespace): those that are older than the signatures."""
        return provenance.unmarked(cluster_id, claims)

    @transaction.atomic
    def on_pods_changed(self, cluster_id: int, keys: set[Key], now: datetime) -> None:
        """Updates jobs whose pods changed: some kinds report through pods only, and a waiting reason counts running pods."""
        jobs = {job.uid: job for job in status_rows.lock_jobs(uid for uid, _ in keys)}
        running = status_rows.count_running(cluster_id, jobs)
        status_rows.prefetch_related([(job, job.status) for job in jobs.values()], running.restarting)
        batch = StatusBatch(now, restarting=crash_loops.rows(running.restarting), created=running.created)
        ended = [uid for uid, job in jobs.items() if status_rows.phase_of(job, job.status) in FINISHED]
        batch.asked_to_stop = notices.attempts_asked_to_stop([(uid, jobs[uid].attempt) for uid in ended], now)
        state_preservation.keep(cluster_id, [(jobs[uid], attempt, {}) for uid, attempt in keys if uid in jobs], now)
        for job in jobs.values():
            numbers = parts.counting(job.shares, job.attempt)
            reported = [number for number in numbers if (job.uid, number) in keys]
            if job.shares:
                pods = {number: _pods_seen(job, number, running, batch) for number in reported}
                division_status.report_pods(job, pods, now)
            elif reported and job.state in (Job.State.DISPATCHED, Job.State.RUNNING):
                _apply_status(job, job.status, running[job.uid, job.attempt], batch)
        batch.write()
        runtime_facts.hurry(jobs, keys, now)
        node_checks.review(jobs, keys & running.unsettled, now)
        # Most jobs stay on their member and keep their charge. A divided job may release the charge of single shares.
        charged = (job for job in jobs.values() if job.charge is not None)
        if releasable := [job.uid for job in charged if job.shares or job.state not in Job.ON_MEMBER]:
            charges.release(now, releasable)
            loop.advance_evictions(now, releasable)


def register() -> None:
    event_handlers.register(JobEventHandler())


def _reports(jobs: Mapping[UUID, Job], copies: Iterable[member_copies.Copy]) -> list[tuple[Job, int, Manifest]]:
    return [(jobs[uid], attempt, copy.get("status") or {}) for (uid, attempt), copy in copies if uid in jobs]


def _whole(jobs: Mapping[UUID, Job], copies: Iterable[member_copies.Copy]) -> list[tuple[Job, int, Manifest]]:
    """The copies of current attempts of jobs that are not divided."""
    return [
        (jobs[uid], attempt, copy)
        for (uid, attempt), copy in copies
        if uid in jobs and jobs[uid].attempt == attempt and not jobs[uid].shares
    ]


def _asked_to_stop(
    jobs: Mapping[UUID, Job], copies: Iterable[member_copies.Copy], now: datetime
) -> dict[Key, StopRequest]:
    ended = [
        (jobs[uid], attempt, copy)
        for (uid, attempt), copy in copies
        if uid in jobs and status_rows.phase_of(jobs[uid], copy.get("status") or {}) in FINISHED
    ]
    asked_to_stop = notices.attempts_asked_to_stop([(job.uid, attempt) for job, attempt, _ in ended], now)
    return asked_to_stop | notices.attempts_stopped_by_fleet(ended)


def _pods_seen(job: Job, attempt: int, running: RunningPods, batch: StatusBatch) -> PodsSeen:
    key = (job.uid, attempt)
    loop = crash_loops.find(job, batch.restarting, batch.now, attempt=attempt)
    return PodsSeen(running[key], running.created.get(key, 0), loop)


def _has_succeeded(job: Job, copy: Manifest) -> bool:
    return status_rows.phase_of(job, copy.get("status") or {}) is Phase.SUCCEEDED


def _has_newly_failed(job: Job, copy: Manifest) -> bool:
    """Whether this is the first report of the job's failure."""
    return (
        job.state in Job.ON_MEMBER
        and job.state != Job.State.BACKOFF
        and status_rows.phase_of(job, copy.get("status") or {}) is Phase.FAILED
    )


def _is_expected(job: Job, attempt: int, cluster_id: int) -> bool:
    """Whether the member is expected to have a copy of that attempt."""
    if job.cluster_id == cluster_id and job.state in Job.ON_MEMBER:
        return True
    work = Work.objects.filter(job_uid=job.uid, attempt=attempt, cluster_id=cluster_id)
    return work.exclude(state=Work.State.GONE).exists()


def _must_stop(job: Job, copy: Manifest) -> bool:
    """Whether the copy can still run although the job has ended or is suspended.

    It may have been sent late, or resumed inside the member.
    """
    if not (job.finished or job.suspended):
        return False
    kind = registry.kind_of(job.api_version, job.kind)
    if kind.read_status(copy.get("status") or {}, 0).phase in FINISHED:
        return False
    return job.finished or not kind.read(copy).suspended


def _stop_copy(job: Job, attempt: int, cluster_id: int, now: datetime) -> None:
    matching = Work.objects.filter(job_uid=job.uid, attempt=attempt, cluster_id=cluster_id)
    if job.suspended:
        works.order(matching, WorkEvent.RESUMED_IN_MEMBER, now)
    else:
        works.order(matching.filter(state__in=[Work.State.SUSPENDED, Work.State.APPLIED]), WorkEvent.SUPERSEDED, now)


def _apply_status(job: Job, status: Manifest, running: int, batch: StatusBatch) -> None:
    """Applies a report of the current attempt to the job, and adds the changed job to the batch."""
    if job.state not in _FOLLOWED:
        return
    state = registry.kind_of(job.api_version, job.kind).read_status(status, running)
    if job.state in _STOPPING and state.phase is not Phase.SUCCEEDED:
        return
    if state.phase in FINISHED and notices.is_answer(batch.asked_to_stop.get((job.uid, job.attempt)), state.phase):
        batch.timeline += notices.note_stopped(job, job.attempt, state.phase, batch.now)
        return
    before = (job.state, job.status, job.reason, job.unhealthy_since)
    if job.state in (*Job.WAITING, *_STOPPING) and not _resume_former_attempt(job, state, batch.now):
        return
    job.status = status
    _advance_state(job, state, running, batch)
    _follow_crash_loop(job, before[3], batch)
    if before != (job.state, job.status, job.reason, job.unhealthy_since):
        batch.changed.append(job)


def _resume_former_attempt(job: Job, state: State, now: datetime) -> bool:
    """Makes the attempt that a waiting job had left current again if its copy still runs or has succeeded.

    Returns False if the job keeps waiting. The copy of a queued job that has failed is withdrawn.
    """
    if state.phase is Phase.FAILED and job.state == Job.State.QUEUED:
        works.withdraw_attempt(job, job.attempt, now)
    succeeded = state.phase is Phase.SUCCEEDED
    return (succeeded or state.phase is Phase.RUNNING) and returns.come_back(job, now, succeeded=succeeded)


def _apply_earlier_success(job: Job | None, attempt: int, cluster_id: int, copy: Manifest, batch: StatusBatch) -> None:
    """Ends the job because an earlier attempt has succeeded, unless a later attempt has been sent since."""
    if (
        job is None
        or job.shares
        or attempt >= job.attempt
        or status_rows.phase_of(job, copy.get("status") or {}) is not Phase.SUCCEEDED
        or notices.is_answer(batch.asked_to_stop.get((job.uid, attempt)), Phase.SUCCEEDED)
    ):
        return
    if not returns.retract_later(job, attempt, cluster_id, batch.now):
        return
    job.status = copy["status"]
    state = registry.kind_of(job.api_version, job.kind).read_status(job.status, 0)
    works.correct_outcome(job, attempt, Outcome.SUCCEEDED, state.message, batch.now)
    _mark_finished(job, JobEvent.SUCCEEDED, Outcome.SUPERSEDED, f"attempt {attempt} had succeeded", batch)
    batch.changed.append(job)


def _advance_state(job: Job, state: State, running: int, batch: StatusBatch) -> None:
    if state.phase is Phase.SUCCEEDED:
        _mark_finished(job, JobEvent.SUCCEEDED, Outcome.SUCCEEDED, state.message, batch)
    elif state.phase is Phase.FAILED:
        _mark_failed(job, state, batch)
    elif state.phase is Phase.RUNNING:
        _mark_running(job, batch)
    elif state.phase is Phase.RESTARTING:
        if job.unhealthy_since is None:
            job.unhealthy_since = batch.now
            health.check_later(job, batch.now)
    elif job.state in (Job.State.PLACED, Job.State.DISPATCHED):
        transitions.enter(job, JobEvent.SENT)
        if refusals.is_current(job, batch.created.get((job.uid, job.attempt), 0)):
            return
        cluster = job.cluster.name if job.cluster else "the member"
        message = f"{cluster} has the job; {running} of {refusals.pods_of(job)} pods run"
        job.reason = Reason(Code.WAITING_FOR_PODS, message).as_json()


def _mark_running(job: Job, batch: StatusBatch) -> None:
    job.unhealthy_since = None
    if job.state == Job.State.RUNNING:
        return
    cluster = job.cluster.name if job.cluster else "its cluster"
    line = job_event(job, "Running", f"All pods of attempt {job.attempt} run on {cluster}")
    (batch.timeline if job.started_at else batch.new_timeline).append(line)
    transitions.enter(job, JobEvent.RUNS)
    job.reason = None
    job.started_at = job.started_at or batch.now
    batch.started.append(job)


def _follow_crash_loop(job: Job, since: datetime | None, batch: StatusBatch) -> None:
    """Marks a running job as unhealthy while its pods are in a crash loop. ``since`` is when that was first seen, if it was."""
    if job.state not in (Job.State.DISPATCHED, Job.State.RUNNING):
        return
    loop = crash_loops.find(job, batch.restarting, batch.now)
    if loop is None:
        if since is not None and job.unhealthy_since is None and job.state == Job.State.RUNNING:
            job.reason = None
        return
    job.unhealthy_since = since or batch.now
    consequence = "fails" if health.tolerance(job) is None else "moves to another cluster"
    message = f"{loop}; the job {consequence} unless its pods are stable within {crash_loops.tolerated_s(job):g} s"
    job.reason = Reason(Code.APPLICATION_UNHEALTHY, message).as_json()
    if since is None:
        batch.record(job, "CrashLoop", message, warning=True)
        health.check_later(job, batch.now)


def _mark_failed(job: Job, state: State, batch: StatusBatch) -> None:
    """Ends the job. If its policy has application failover, the job instead moves once its toleration is over."""
    tolerance = health.tolerance(job)
    if tolerance is None:
        failure = batch.failure_of(job)
        _mark_finished(job, JobEvent.FAILED, Outcome.FAILED, state.message, batch)
        message = "; ".join(filter(None, (state.message or "the job failed in its member", failure.summary)))
        job.reason = Reason(Code.FAILED, message, cause=failure.cause).as_json()
        return
    if job.unhealthy_since is None or job.state != Job.State.BACKOFF:
        job.unhealthy_since = job.unhealthy_since or batch.now
        transitions.enter(job, JobEvent.FAILED_IN_MEMBER)
        failure = batch.failure_of(job)
        details = "; ".join(filter(None, (state.message, failure.summary))) or "no message"
        when = "moves at once" if failure.cause is Cause.INFRASTRUCTURE else f"moves after {tolerance:g} s"
        message = f"failed on {job.cluster}: {details}; {when}"
        job.reason = Reason(Code.APPLICATION_UNHEALTHY, message, cause=failure.cause).as_json()
        batch.record(job, "InterpretHealth", message, warning=True)
        health.check_later(job, batch.now)


def _mark_finished(job: Job, event: JobEvent, outcome: Outcome, message: str, batch: StatusBatch) -> None:
    transitions.enter(job, event)
    job.reason = job.unhealthy_since = job.charge = job.reclaim = None
    job.finished_at = batch.now
    job.started_at = job.started_at or batch.now
    batch.ended_attempts[outcome, message[:500]].append(job)
    message = message or f"{job.state} on attempt {job.attempt}"
    batch.new_timeline.append(job_event(job, job.state, message, warning=job.state == Job.State.FAILED))


@transaction.atomic
def _apply_final_reports(cluster_id: int, copies: Sequence[tuple[Key, Manifest]], now: datetime) -> None:
    """Applies the last status of copies that had ended before they were deleted: such jobs end, and do not fail over."""
    jobs = {job.uid: job for job in status_rows.lock_jobs(uid for (uid, _), _ in copies)}
    status_rows.prefetch_related(
        [(jobs[uid], copy.get("status") or {}) for (uid, _), copy in copies if uid in jobs], ()
    )
    progress.record(_whole(jobs, copies))
    batch = StatusBatch(now, asked_to_stop=_asked_to_stop(jobs, copies, now))
    state_preservation.keep(cluster_id, _reports(jobs, copies), now)
    for (uid, attempt), copy in copies:
        job, status = jobs.get(uid), copy.get("status") or {}
        if job is None or status_rows.phase_of(job, status) not in FINISHED:
            continue
        if division_status.counts(job, attempt, succeeded=_has_succeeded(job, copy)):
            division_status.report_copy(job, attempt, copy, PodsSeen(), batch)
        elif not job.shares and job.attempt == attempt:
            _apply_status(job, status, 0, batch)
        else:
            _apply_earlier_success(job, attempt, cluster_id, copy, batch)
    batch.write()


@transaction.atomic
def _handle_missing_copy(cluster_id: int, key: Key, now: datetime) -> None:
    """Handles a copy that is not in its member: it was withdrawn, or deleted there by another client."""
    uid, attempt = key
    # Locked before the works are read: a withdrawal that is being recorded would otherwise look like a deletion by others.
    lock_owners([uid])
    matching = Work.objects.filter(job_uid=uid, attempt=attempt, cluster_id=cluster_id)
    withdrawn = matching.filter(state__in=[Work.State.WITHDRAWING, Work.State.SUSPENDED])
    for pk in list(withdrawn.filter(state=Work.State.WITHDRAWING).values_list("pk", flat=True)):
        Work.objects.filter(pk=pk).update(due_at=now)
        events.enqueue("jobs.push", pk)
    job = Job.objects.select_related("cluster").filter(uid=uid).first()
    if job is None or not matching.filter(state=Work.State.APPLIED).exists():
        return
    if job.shares:
        division.copy_vanished(job, attempt, now)
        return
    if job.attempt == attempt:
        _lose_copy(job, matching.filter(state=Work.State.APPLIED), now)


def _lose_copy(job: Job, work: QuerySet[Work], now: datetime) -> None:
    """Handles the deletion of the current attempt's copy by another client: the work ends.

    The job moves to another cluster, unless its pods show that it has succeeded or its failure is already recorded.
    """
    has_failed = job.state == Job.State.BACKOFF
    asked_to_stop = notices.attempts_asked_to_stop([(job.uid, job.attempt)], now).get((job.uid, job.attempt))
    if job.state in Job.ON_MEMBER and _pods_succeeded(job) and not notices.is_answer(asked_to_stop, Phase.SUCCEEDED):
        _end_by_pods(job, now)
    elif job.state in Job.ON_MEMBER and not has_failed:
        transitions.move_works(work, WorkEvent.VANISHED, due_at=now)
        message = f"the copy on {job.cluster or 'its member'} was deleted there, not by Convoy"
        failover.leave(job, Outcome.VANISHED, Reason(Code.COPY_VANISHED, message), now)
    elif job.state in Job.WAITING:
        works.withdraw_attempt(job, job.attempt, now)
    if job.finished or has_failed:
        transitions.move_works(work, WorkEvent.VANISHED, due_at=now)


def _pods_succeeded(job: Job) -> bool:
    """Whether every pod of the job has succeeded, by the last report of each."""
    rows = Pod.objects.filter(job_uid=job.uid, attempt=job.attempt)
    phases = list(rows.values_list("phase", flat=True))
    wanted = max(sum(role["replicas"] for role in job.roles), parts.divisible(job.roles) or 0)
    return len(phases) >= wanted and set(phases) == {"Succeeded"}


def _end_by_pods(job: Job, now: datetime) -> None:
    locked = status_rows.lock_jobs([job.uid])[0]
    if locked.attempt != job.attempt or locked.state not in Job.ON_MEMBER:
        return
    batch = StatusBatch(now)
    message = "its copy was deleted after all of its pods had succeeded"
    _mark_finished(locked, JobEvent.SUCCEEDED, Outcome.SUCCEEDED, message, batch)
    batch.changed.append(locked)
    batch.write()
    job.refresh_from_db(fields=["state"])
