"""Laws about rows that hold whatever happened, checked by tests after each step."""

from datetime import timedelta

from django.utils import timezone

from fleet.models import Cluster, Hold
from jobs.core.division import shares
from jobs.core.life.shares import ShareState
from jobs.kinds import registry
from jobs.kinds.base import Phase
from jobs.models import Job, Work
from jobs.services.dispatch import dispatcher
from jobs.services.lifecycle import works

_ENDED = (Phase.SUCCEEDED, Phase.FAILED)


def terminal_holds_nothing() -> None:
    """A finished job has no copy that may run but one being removed, and until that is gone it keeps hold and charge."""
    for job in Job.objects.filter(state__in=Job.FINISHED):
        states = dict(Work.objects.filter(job_uid=job.uid).values_list("attempt", "state"))
        leaving = {attempt for attempt, state in states.items() if state == Work.State.WITHDRAWING}
        live = {attempt for attempt, state in states.items() if state not in ("Gone", "Kept", "Withdrawing")}
        assert live <= _ended(job), f"{job} is {job.state}, and of {states} only {_ended(job)} have ended"
        held = Hold.objects.filter(job_uid=job.uid, released_at__isnull=True)
        assert set(held.values_list("attempt", flat=True)) <= leaving, f"{job} is {job.state} and holds capacity"
        assert job.charge is None or leaving, f"{job} is {job.state} and is charged"
        assert job.finished_at is not None and job.unhealthy_since is None and job.reclaim is None


def remove_copies() -> None:
    """The members answer and have removed what was to be removed, and the workers have recorded it."""
    Cluster.objects.update(state=Cluster.State.READY)
    now = timezone.now() + timedelta(hours=2)
    for pk in Work.objects.filter(state=Work.State.WITHDRAWING).values_list("pk", flat=True):
        claimed = works.claim(pk, now)
        assert claimed is not None
        dispatcher._mark_removed(claimed, now)


def _ended(job: Job) -> set[int]:
    """The attempts whose copies have ended by what their member reported last."""
    kind = registry.kind_of(job.api_version, job.kind)
    if job.shares:
        ended = (ShareState.SUCCEEDED, ShareState.BACKOFF)
        told = [(each.attempt, each.state, dict(each.status)) for each in shares.of_stored(job.shares)]
        return {n for n, state, status in told if state in ended or kind.read_status(status, 0).phase in _ENDED}
    return {job.attempt} if kind.read_status(job.status, 0).phase in _ENDED else set()
