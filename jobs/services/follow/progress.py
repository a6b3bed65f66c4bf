"""Keeps what copies carry of their trainings' progress, and says which attempts had reached their end by their own steps.

A report costs no announcement: it changes nothing that anybody waits for, and comes every few seconds from each job.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from uuid import UUID

from jobs.kinds.base import Manifest
from jobs.models import Job, Progress
from jobs.runtime import progress

Key = tuple[UUID, int]
_FIELDS = ("step", "total", "percent", "eta_s", "loss", "world_size", "saved_step")
_WRITTEN = ("attempt", "reported_at", "claimed_at", *_FIELDS)


def record(copies: Iterable[tuple[Job, int, Manifest]]) -> None:
    """Writes what is new in these copies of current attempts. The jobs are locked."""
    reported = {
        job.pk: _row(job, attempt, read) for job, attempt, copy in copies if (read := of_copy(copy)) is not None
    }
    if not reported:
        return
    rows = Progress.objects.filter(pk__in=reported).values_list("pk", "attempt", "reported_at")
    known = {(pk, attempt): at for pk, attempt, at in rows}
    new = [row for pk, row in reported.items() if (at := known.get((pk, row.attempt))) is None or at < row.reported_at]
    Progress.objects.bulk_create(new, update_conflicts=True, unique_fields=["job"], update_fields=_WRITTEN)


def ends(asked: Mapping[Key, datetime]) -> dict[Key, bool]:
    """Of these attempts, with when each was asked to stop, whether they had reached their end all the same, if they say so."""
    if not asked:
        return {}
    rows = Progress.objects.filter(job__uid__in={uid for uid, _ in asked}).values("job__uid", *_WRITTEN)
    keys = {(row["job__uid"], row["attempt"]): _of_row(row) for row in rows}
    says = {key: keys[key].says_whether_complete(at.timestamp()) for key, at in asked.items() if key in keys}
    return {key: is_complete for key, is_complete in says.items() if is_complete is not None}


def ends_of_copies(asked: Mapping[Key, tuple[Manifest, datetime]]) -> dict[Key, bool]:
    """The same of attempts' copies, by what these carry."""
    reports = {key: (read, at) for key, (copy, at) in asked.items() if (read := of_copy(copy)) is not None}
    says = {key: read.says_whether_complete(at.timestamp()) for key, (read, at) in reports.items()}
    return {key: is_complete for key, is_complete in says.items() if is_complete is not None}


def saved_steps(jobs: Iterable[Job]) -> dict[int, int | None]:
    """The last checkpoint that each of these jobs is known to have, by the job's key."""
    return dict(Progress.objects.filter(pk__in={job.pk for job in jobs}).values_list("pk", "saved_step"))


def words(job: Job) -> str:
    """How far the current attempt says that it is."""
    row = Progress.objects.filter(job=job, attempt=job.attempt).first()
    if row is None:
        return "it has reported no progress"
    if row.step is not None and row.total:
        return f"by its own progress it is at step {row.step} of {row.total}"
    return "it has not reported 100 % before the notice"


def of_copy(copy: Manifest) -> progress.Progress | None:
    """The latest report that the copy carries."""
    meta = copy.get("metadata") or {}
    text = (meta.get("annotations") or {}).get(progress.PROGRESS)
    return progress.read(text, str(meta.get("uid"))) if text else None


def _row(job: Job, attempt: int, read: progress.Progress) -> Progress:
    row = Progress(job=job, attempt=attempt, **{name: getattr(read, name) for name in _FIELDS})
    row.reported_at = _time(read.at)
    row.claimed_at = None if read.claimed_at is None else _time(read.claimed_at)
    return row


def _of_row(row: Mapping[str, object]) -> progress.Progress:
    at, claimed = row["reported_at"], row["claimed_at"]
    assert isinstance(at, datetime)  # noqa: S101
    claimed_at = claimed.timestamp() if isinstance(claimed, datetime) else None
    fields = {name: row[name] for name in _FIELDS}
    return progress.Progress(at.timestamp(), claimed_at=claimed_at, **fields)  # type: ignore[arg-type]  # rows are not typed


def _time(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
