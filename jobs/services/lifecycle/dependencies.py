"""Jobs that wait for others (``convoy.dev/after``), as rows: written at submission, settled as their predecessors end.

What holds a job up is derived from the states of its predecessors, so it does not matter in which order jobs are submitted, end
and are settled. Only the end of a predecessor that is deleted is written down, by the transaction that deletes it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from threading import local

from django.db import transaction
from django.db.models import Q, QuerySet

from fleet.db import prepared
from fleet.errors import FieldFault, InvalidInput
from fleet.models import Lease
from jobs.core.life import dependencies as core
from jobs.core.life.dependencies import Edge, On, Predecessor, Progress
from jobs.core.manifest_fields import Faults
from jobs.core.reasons import Code, Reason
from jobs.events import announce_jobs
from jobs.models import Dependency, Job
from jobs.services.lifecycle import cycle_requests
from jobs.services.lifecycle.changed_jobs import Changes, Key
from jobs.services.lifecycle.locks import lock_jobs

_LOCK = "task/dependencies"
_CHUNK = 500
MOST_OPEN = 10_000
"""Predecessors that the jobs of one namespace may wait for at once: a submission looks for cycles among all that are open."""
_known = local()
"""Of each thread, what of the journal it has dealt with."""


def asked_for(job: Job) -> tuple[Predecessor, ...]:
    """The predecessors that its manifest names."""
    return core.parse_after(job.manifest["metadata"].get("annotations"), Faults())


def lock() -> None:
    """Lets only one transaction at a time write dependencies: two could each write half of a cycle, and see none."""
    Lease.objects.get_or_create(name=_LOCK)
    list(Lease.objects.select_for_update(no_key=True).filter(name=_LOCK).values_list("pk"))


def write(jobs: Sequence[Job], now: datetime) -> None:
    """Stores what these jobs wait for, in place of what they waited for before. Raises `InvalidInput` for a cycle.

    The jobs are ours, and have never been placed. The caller saves and announces them.
    """
    Dependency.objects.filter(job__in=[job.pk for job in jobs]).delete()
    rows = [
        Dependency(job=job, namespace=job.namespace, name=each.name, kind=each.kind, on=each.on)
        for job in jobs
        for each in asked_for(job)
    ]
    Dependency.objects.bulk_create(rows, batch_size=_CHUNK)
    waiting, namespaces = {row.job_id for row in rows}, {row.namespace for row in rows}
    _refuse_too_many(namespaces)
    if _are_named([job for job in jobs if job.pk in waiting]):
        for namespace in sorted(namespaces):
            _refuse_cycles(waiting, namespace)
    _settle(jobs, now)


def _are_named(jobs: Sequence[Job]) -> bool:
    """Whether a job may wait for one of these, so that they may be part of a cycle."""
    names = sorted({job.name for job in jobs})
    named = _open().filter(namespace__in={job.namespace for job in jobs}, name__in=names[:_CHUNK])
    return len(names) > _CHUNK or named.exists()


def _refuse_too_many(namespaces: Collection[str]) -> None:
    for namespace in sorted(namespaces):
        if (count := _open().filter(namespace=namespace).count()) > MOST_OPEN:
            detail = (
                f"the jobs of namespace {namespace} would wait for {count} predecessors, more than {MOST_OPEN}: "
                "name fewer, or submit the last jobs once the first have ended"
            )
            raise InvalidInput(
                f"nothing was applied: {detail}", (FieldFault(f"metadata.annotations.{core.AFTER}", detail),)
            )


def _refuse_cycles(jobs: Collection[int], namespace: str) -> None:
    rows = _open().filter(namespace=namespace).exclude(job__state__in=Job.FINISHED).order_by("job_id", "pk")
    listed = rows.values_list("job_id", "job__name", "job__kind", "name", "on", "kind")
    edges = [Edge(job, name, own, Predecessor(of, On(on), kind)) for job, name, own, of, on, kind in listed]
    if cycle := core.find_cycle(edges, jobs):
        way = " after ".join(cycle)
        detail = f"makes jobs wait for one another, so that none of them would ever start: {way}"
        raise InvalidInput(
            f"nothing was applied: {detail}", (FieldFault(f"metadata.annotations.{core.AFTER}", detail),)
        )


def settle(now: datetime) -> int:
    """Brings the jobs up to date that wait for jobs that have changed, and once a minute all that wait for others.

    Changed is what has since this thread settled last. Returns how many may start now or wait for another reason.
    """
    changes = _changes()
    if not _FIRST_WAITING.values():
        changes.forget()
        return 0
    count = _settle_waiting(_waiting(), changes.names(now), now)
    changes.done()
    return count


def _waiting() -> QuerySet[Job]:
    return Job.objects.filter(awaits__isnull=False, deleting_at__isnull=True).exclude(state__in=Job.FINISHED)


_FIRST_WAITING: prepared.Rows[Job] = prepared.Rows(lambda _: _waiting().order_by().values_list("pk")[:1])


def _settle_waiting(waiting: QuerySet[Job], names: Collection[Key] | None, now: datetime) -> int:
    """``names``: of the jobs that may have changed; None: all."""
    jobs = list((waiting if names is None else _after(waiting, names)).only("pk", "namespace", "awaits").order_by("pk"))
    stale = _changed(jobs)
    if not stale:
        return 0
    with transaction.atomic():
        locked = lock_jobs(waiting.filter(pk__in=stale))
        changed = _settle(Job.objects.filter(pk__in=locked).order_by("pk"), now)
        announce_jobs(changed, now, ["awaits"])
        cycle_requests.request()
    return len(changed)


def _after(waiting: QuerySet[Job], names: Collection[Key]) -> QuerySet[Job]:
    """Of the waiting jobs those that changed themselves, or wait for one of these."""
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for namespace, name in sorted(names):
        by_namespace[namespace].append(name)
    pks: set[int] = set()
    for namespace, listed in by_namespace.items():
        for start in range(0, len(listed), _CHUNK):
            some = listed[start : start + _CHUNK]
            rows = _open().filter(namespace=namespace, name__in=some)
            pks |= set(rows.order_by().values_list("job_id", flat=True))
            pks |= set(waiting.filter(namespace=namespace, name__in=some).values_list("pk", flat=True))
    return waiting.filter(pk__in=pks)


def _changes() -> Changes:
    if not hasattr(_known, "changes"):
        _known.changes = Changes()
    changes: Changes = _known.changes
    return changes


def remember(job: Job) -> None:
    """Keeps what became of a job that is about to be deleted, for those that wait for it; its row is locked."""
    state = Job.objects.filter(pk=job.pk).values_list("state", flat=True).first()
    last = state if state in Job.FINISHED else core.DELETED
    same = Q(namespace=job.namespace, name=job.name, kind__in=["", job.kind])
    _open().filter(same).exclude(job=job.pk).update(last=last)


def failed(job: Job) -> list[str]:
    """The predecessors whose success it waits for in vain."""
    return [str(each.of) for each in _standings([job])[0][job.pk] if each.progress is Progress.FAILED]


def met_at(job: Job) -> datetime | None:
    """When the last of its predecessors had ended; None: it names none."""
    return Dependency.objects.filter(job=job).order_by("-met_at").values_list("met_at", flat=True).first()


def _open() -> QuerySet[Dependency]:
    return Dependency.objects.filter(met_at__isnull=True)


def _changed(jobs: Sequence[Job]) -> list[int]:
    """Those of the jobs whose stored reason is not what holds for them now."""
    reasons = _reasons(jobs)[0]
    return [job.pk for job in jobs if reasons.get(job.pk) != job.awaits]


def _settle(jobs: Iterable[Job], now: datetime) -> list[Job]:
    """Sets what holds these jobs up, and marks what does so no more. Returns the jobs for which that differs, unsaved."""
    listed = list(jobs)
    reasons, met = _reasons(listed)
    for start in range(0, len(met), _CHUNK):
        _open().filter(pk__in=met[start : start + _CHUNK]).update(met_at=now)
    changed = [job for job in listed if reasons.get(job.pk) != job.awaits]
    for job in changed:
        job.awaits = reasons.get(job.pk)
    return changed


def _reasons(jobs: Sequence[Job]) -> tuple[dict[int, dict[str, str]], list[int]]:
    """Why each of the jobs has to wait, and the dependencies that are met."""
    open_ends, met = _standings(jobs)
    return {job: _reason(standings) for job, standings in open_ends.items()}, met


def _standings(jobs: Sequence[Job]) -> tuple[dict[int, list[core.Standing]], list[int]]:
    """By job its predecessors that hold it up, and the dependencies that are met."""
    rows = list(_open().filter(job__in=[job.pk for job in jobs]).order_by("job_id", "pk"))
    states = _states({(row.namespace, row.name) for row in rows})
    met: list[int] = []
    open_ends: dict[int, list[core.Standing]] = defaultdict(list)
    for row in rows:
        named = [state for kind, state in states.get((row.namespace, row.name), ()) if row.kind in ("", kind)]
        standing = core.standing(Predecessor(row.name, On(row.on), row.kind), named, row.last)
        if standing.progress is Progress.MET:
            met.append(row.pk)
        else:
            open_ends[row.job_id].append(standing)
    return open_ends, met


def _reason(standings: Sequence[core.Standing]) -> dict[str, str]:
    has_failed = any(each.progress is Progress.FAILED for each in standings)
    code = Code.PREDECESSOR_FAILED if has_failed else Code.WAITING_FOR_JOB
    reason = Reason(code, core.message_of(standings))
    return {"code": reason.code.value, "message": reason.message}


def _states(keys: Collection[Key]) -> dict[Key, list[tuple[str, str]]]:
    """Kind and state of the jobs of these names."""
    states: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    listed = sorted({name for _, name in keys})
    for start in range(0, len(listed), _CHUNK):
        rows = Job.objects.filter(namespace__in={ns for ns, _ in keys}, name__in=listed[start : start + _CHUNK])
        for namespace, name, kind, state in rows.order_by().values_list("namespace", "name", "kind", "state"):
            states[namespace, name].append((kind, state))
    return states
