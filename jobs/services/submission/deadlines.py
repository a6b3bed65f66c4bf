"""What a submission says of a job's deadline and of how long its queue lets it run, before anything of it has started."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from fleet.errors import FieldFault, InvalidInput
from jobs import snapshot
from jobs.core.failover.lifecycle import DEADLINE
from jobs.models import Job
from quotas.core.trees.durations import format_duration
from quotas.core.trees.tree import Tree


def refuse_past(job: Job, now: datetime) -> None:
    """Raises `InvalidInput` for a new job whose deadline has come."""
    if job.deadline_at is not None and job.deadline_at <= now:
        detail = f"must be in the future: {job.deadline_at:%F %T} UTC is not"
        field = f"metadata.annotations.{DEADLINE}"
        raise InvalidInput(f"nothing was applied: {field} {detail}", (FieldFault(field, detail),))


def warnings(job: Job, tree: Tree | None) -> Iterator[str]:
    """Where a job says that it runs longer than it may."""
    seconds = snapshot.declared_runtime(job.roles)
    if seconds is None:
        return
    runs = timedelta(seconds=seconds)
    if job.deadline_at is not None and job.created_at + runs > job.deadline_at:
        yield (
            f"it declares to run {format_duration(runs)} and is ended at its deadline {job.deadline_at:%F %T} UTC: even if it"
            " starts at once, it does not end by itself before"
        )
    most = tree.by_path[job.leaf].attributes.time.max_runtime if tree and job.leaf in tree.by_path else None
    if most is not None and runs > most:
        yield (
            f"it declares to run {format_duration(runs)} and is ended after {format_duration(most)}, the max-runtime of its"
            f" queue {job.leaf}"
        )
