"""Questions about many jobs that every door may ask: which match, and how many of each. Knows no door."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from fleet.kube.requests.selectors import Selector
from fleet.models import Pod
from jobs.core.division import shares
from jobs.models import Job
from jobs.models.listed import Label, Walked

BY: Mapping[str, str] = {
    "state": "state",
    "kind": "kind",
    "namespace": "namespace",
    "queue": "leaf",
    "cluster": "cluster__name",
    "policy": "policy__name",
    "reason": "reason_code",
    "user": "submitted_by",
}
"""What jobs can be grouped by, beside ``label:KEY``."""
LABEL = "label:"
GROUPS = 200


@dataclass(frozen=True, slots=True)
class Group:
    value: str
    """Empty: the jobs that have none."""
    count: int
    gpus: int


def labelled(rows: QuerySet[Job], selector: Selector) -> QuerySet[Job]:
    """Those whose labels match, decided by the database."""
    for number, requirement in enumerate(selector):
        name = f"label_{number}"
        rows = rows.alias(**{name: _label(requirement.key)})
        missing = Q(**{f"{name}__isnull": True})
        among = Q(**{f"{name}__in": requirement.values})
        conditions = {"Exists": ~missing, "DoesNotExist": missing, "In": among, "NotIn": missing | ~among}
        rows = rows.filter(conditions[requirement.operator])
    return rows


def in_queue(rows: QuerySet[Job], path: str) -> QuerySet[Job]:
    """Those of a leaf of the quota tree, or of all leaves below a node."""
    at = rows.alias(at_leaf=Walked(F("leaf")))
    return at.filter(Q(at_leaf=path) | Q(at_leaf__gte=f"{path}/", at_leaf__lt=f"{path}0"))


def among(rows: QuerySet[Job], column: str, values: Sequence[Any] | QuerySet[Any]) -> QuerySet[Job]:
    """Those with one of these values in a column that many jobs may share."""
    name = f"at_{column}"
    return rows.alias(**{name: Walked(F(column))}).filter(**{f"{name}__in": values})


def event_of(jobs: QuerySet[Job]) -> Q:
    """Whether an event is about one of these jobs."""
    regarding = {part: OuterRef(f"regarding_{part}") for part in ("kind", "namespace", "name")}
    return Q(Exists(jobs.filter(**regarding)))


def groups(rows: QuerySet[Job], by: str) -> list[Group]:
    """How many jobs and GPUs there are of each value, the largest first; at most `GROUPS` of them."""
    value = _label(by.removeprefix(LABEL)) if by.startswith(LABEL) else Walked(F(BY[by]))
    counted = rows.order_by().annotate(value=value).values("value").annotate(count=Count("pk"), held=Sum("gpus"))
    sized = counted.order_by("-count", "value").values_list("value", "count", "held")[:GROUPS]
    return [Group(value or "", count, gpus) for value, count, gpus in sized]


def _label(key: str) -> Cast:
    """As plain text: the lookups of a JSON key compare with JSON."""
    return Cast(Label(key, "labels"), TextField())


def running_pods(jobs: Iterable[Job]) -> dict[UUID, int]:
    """How many pods of their current attempts run, in one query; of a divided job those of all its shares.

    A job that has ended runs none. Of a job whose attempt has just been ended those count that have not left yet.
    """
    attempts = {job.uid: shares.counting(job.shares, job.attempt) for job in jobs if job.attempt and not job.finished}
    if not attempts:
        return {}
    running = Pod.objects.filter(job_uid__in=attempts, phase="Running").order_by()
    counts: dict[UUID, int] = dict.fromkeys(attempts, 0)
    for uid, attempt, count in running.values_list("job_uid", "attempt").annotate(count=Count("pk")):
        counts[uid] += count if attempt in attempts[uid] else 0
    return counts


def elastic_jobs() -> QuerySet[Job]:
    """Running jobs that the scheduler may give more pods, of which a person asked for none."""
    rows = Job.objects.filter(elastic=True, state=Job.State.RUNNING, suspended=False, deleting_at__isnull=True)
    return rows.filter(resize__isnull=True, shrinks__isnull=True)


def small_starters() -> QuerySet[Job]:
    """Waiting jobs that may start with fewer pods than they ask for. One that is moving may have a copy that runs still."""
    waiting = Job.objects.filter(elastic=True, state=Job.State.QUEUED, suspended=False, deleting_at__isnull=True)
    return waiting.filter(size__isnull=False, resize__isnull=True, shares=[])


def growing_jobs() -> QuerySet[Job]:
    """Running jobs that are to grow, once there is room."""
    return Job.objects.filter(resize__isnull=False, state=Job.State.RUNNING, suspended=False, deleting_at__isnull=True)
