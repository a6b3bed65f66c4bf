"""The order in which rows are locked, so that no two transactions ever wait for each other.

Scheduler lease, quota tree, cluster, jobs by key; and only then what belongs to a locked job: its works, holds and attempts.
A transaction that touches one row of a work and nothing else, such as a claim, needs no other lock. Rows are locked without
their key (`no_key`): foreign keys are checked when a transaction commits, and must not wait for a change of the row.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from fleet.db import prepared
from fleet.db.prepared import UID
from jobs.models import Job


def lock_jobs(rows: QuerySet[Job]) -> list[int]:
    """Keys of the jobs, which are ours until the transaction ends."""
    return list(rows.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))


def lock_owners(uids: Iterable[UUID]) -> None:
    """Locks the jobs of works that are about to change; those that are gone need no lock."""
    _OWNERS.values(uids=list(set(uids)))


_OWNERS = prepared.Rows(
    lambda param: (
        Job.objects.filter(uid__in=param("uids", UID)).order_by("pk").select_for_update(no_key=True).values_list("pk")
    )
)
