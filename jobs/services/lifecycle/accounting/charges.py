"""When a job's charge ends: its quota is free again once its pods are gone, and not before.

A charge is set by the same update that places the job (`jobs.services.scheduling.loop`) and cleared by the transaction that
records its end. `release` is that record for jobs that went off their member without ending; it is a conditional update, so
it does nothing the second time. It is called when pods are seen gone, and by the sweep for all jobs.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.db import prepared
from fleet.models import Pod
from jobs import snapshot
from jobs.core.gang.entitlement import find_leaf
from jobs.events import announce_jobs
from jobs.models import Job, Work
from jobs.services.lifecycle import cycle_requests
from jobs.services.lifecycle.locks import lock_jobs
from quotas.core.trees.tree import NAME_LABELS

_LETS_GO = (Work.State.GONE, Work.State.KEPT, Work.State.SUSPENDED)
"""States of a work without running pods; of a suspended one they may still be on their way out."""


def release(now: datetime, uids: Iterable[UUID] | None = None) -> int:
    """Frees the quota of those of the jobs, or of all, whose pods are gone; returns how many."""
    if uids is not None:
        return _release(_jobs_to_release().filter(uid__in=list(uids)), now)
    return _release(_jobs_to_release().all(), now) if _ANY_TO_RELEASE.values() else 0


@transaction.atomic(savepoint=False)
def _release(rows: QuerySet[Job], now: datetime) -> int:
    locked = lock_jobs(rows)
    if not locked:
        return 0
    ended = rows.filter(pk__in=locked).order_by("pk")
    freed = [job for job in ended.defer("manifest") if _jobs_to_release().filter(pk=job.pk).update(charge=None)]
    if freed:
        _find_leaves(job for job in freed if not job.finished)
        announce_jobs(freed, now)
        cycle_requests.request()
    return len(freed)


def _find_leaves(jobs: Iterable[Job]) -> None:
    """Gives jobs that wait again the leaf that their labels name now: while they were charged, they kept the former one."""
    labelled = [job for job in jobs if job.labels.keys() & {*NAME_LABELS} and not job.pinned]
    tree = snapshot.tree_in_force()[0] if labelled else None
    for job in labelled:
        belonging = find_leaf(tree, job.namespace, job.labels)
        if belonging.leaf != job.leaf:
            job.leaf, job.leaf_fault = belonging.leaf, belonging.fault[:500]
            Job.objects.filter(pk=job.pk).update(leaf=job.leaf, leaf_fault=job.leaf_fault)


@cache
def _jobs_to_release() -> QuerySet[Job]:
    """Built once: that takes longer than a database needs for the answer. It is only ever copied, never read itself."""
    works = Work.objects.filter(job_uid=OuterRef("uid"))
    same = {name: OuterRef(name) for name in ("job_uid", "attempt", "cluster")}
    suspended = Exists(Work.objects.filter(state=Work.State.SUSPENDED, **same))
    pods_running = Pod.objects.filter(suspended, job_uid=OuterRef("uid"), phase__in=snapshot.LIVE)
    ended = Q(state__in=Job.FINISHED) & ~Exists(works.filter(state=Work.State.WITHDRAWING))
    gone = Q(state__in=Job.OFF_MEMBER) & ~Exists(works.exclude(state__in=_LETS_GO)) & ~Exists(pods_running)
    return snapshot.charged_jobs().filter(ended | gone)


_ANY_TO_RELEASE = prepared.Rows(lambda _: _jobs_to_release().order_by().values_list("pk")[:1])
