"""What became of a job so far, put together from its row, its attempts and their pods: its timeline and its copies.

Only looks. A copy is read from the member itself, as it is there now.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.errors import NotFound, Unavailable
from fleet.member.errors import MemberAway, MemberMissing, MemberRefused
from fleet.models import Pod
from fleet.services.members import member_clients
from jobs.core.explain import timeline
from jobs.core.explain.timeline import Gate, Owner, Passage, Run, Slice
from jobs.kinds import registry
from jobs.models import Job, Work


@dataclass(frozen=True, slots=True)
class Timeline:
    submitted_at: datetime
    ended_at: datetime | None
    now: datetime
    slices: Sequence[Slice]
    gates: Sequence[tuple[Gate, Passage]]

    @property
    def totals(self) -> Mapping[Owner, float]:
        """Seconds by owner, in the order they first had it."""
        totals: dict[Owner, float] = defaultdict(float)
        for each in self.slices:
            totals[each.owner] += each.seconds
        return totals


def timeline_of(job: Job, now: datetime) -> Timeline:
    through = job.finished or job.state == Job.State.RUNNING
    waited = timeline.parse_turns(job.waited)
    slices = timeline.slices_of(job.created_at, job.finished_at, waited, _runs(job), now)
    return Timeline(job.created_at, job.finished_at, now, slices, timeline.gates_of(job.reason or {}, through=through))


def _runs(job: Job) -> list[Run]:
    """Pods of attempts that are gone are not known any more: their making counts as the member's."""
    created: dict[int, datetime] = {}
    pods = Pod.objects.filter(job_uid=job.uid).values_list("attempt", "created_at")
    for attempt, at in pods.order_by("created_at"):
        created[attempt] = at
    return [
        Run(
            each.number,
            each.cluster_name,
            each.placed_at,
            _earlier(created.get(each.number), each.started_at),
            each.started_at,
            each.ended_at,
            each.outcome,
        )
        for each in job.attempts.order_by("number")
    ]


def _earlier(at: datetime | None, limit: datetime | None) -> datetime | None:
    """Members report times in whole seconds: a pod's creation is never later than the time when all pods run."""
    return min(at, limit) if at and limit else at


def copy(job: Job) -> dict[str, Any]:
    """The job's manifest in its member."""
    live = [Work.State.APPLIED, Work.State.SUSPENDING, Work.State.SUSPENDED, Work.State.WITHDRAWING, Work.State.KEPT]
    works = Work.objects.filter(job_uid=job.uid, state__in=live).select_related("cluster")
    work = works.order_by("-attempt").first()
    if work is None:
        raise NotFound(f"{job} has no copy in a member now")
    kind = registry.kind_of(work.api_version, work.kind)
    where = work.cluster.name
    try:
        copy_in_member: dict[str, Any] = member_clients.client(work.cluster).get(
            kind.resource.path(work.namespace, work.name)
        )
    except MemberMissing as e:
        raise NotFound(f"the copy of {job} is gone from {where}") from e
    except MemberAway as e:
        raise Unavailable(f"{where} does not answer: {e.message}") from e
    except MemberRefused as e:
        raise Unavailable(f"{where} refuses to show the copy of {job}: {e.message}") from e
    (copy_in_member.get("metadata") or {}).pop("managedFields", None)
    return {"cluster": where, "attempt": work.attempt, "manifest": copy_in_member}
