"""Decides which objects of a member are copies of this fleet's jobs, and removes copies that should not exist.

Reports of expected copies are applied by `jobs.services.follow.status`. A copy without a work is removed. A copy that is newer
than the database (after restoring a backup) is adopted or removed. An object that claims to be a copy but has no valid
signature is reported and not changed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from fleet.changes import events
from fleet.core.members import marks
from fleet.core.members.observed import mark_of
from fleet.kube.resources import Resource
from fleet.models import Cluster, Identity
from jobs.core.life.works import WORK, WorkEvent
from jobs.events import announce_works
from jobs.kinds.base import Manifest
from jobs.models import DeletedJob, Job, Work
from jobs.services.failover import restored
from jobs.services.lifecycle import transitions
from jobs.services.lifecycle.copies import provenance
from jobs.services.lifecycle.copies.provenance import Verdict

Key = tuple[UUID, int]
"""A job's uid and the number of an attempt."""
Copy = tuple[Key, Manifest]
_UNKNOWN = (
    "is a copy of a job that this database does not know, for example after restoring a backup: Convoy does not change it;"
    " delete it in the cluster if it is not needed"
)


def key_of(copy: Manifest) -> Key | None:
    mark = mark_of((copy.get("metadata") or {}).get("labels") or {})
    return (mark.job_uid, mark.attempt) if mark else None


def judge(
    cluster_id: int, resource: Resource, objects: Sequence[Manifest], now: datetime
) -> tuple[list[Copy], list[Copy]]:
    """Returns the objects that are copies of this fleet's jobs, and the copies that are newer than this database.

    Stray copies are removed. Objects without a valid signature are reported.
    """
    keys = [(key, copy) for copy in objects if (key := key_of(copy)) is not None]
    here = Identity.here() if keys else ""
    candidates = [(key, copy) for key, copy in keys if _is_of_fleet(copy, here)]
    if not candidates:
        return [], []
    batch = provenance.load_provenance(cluster_id, (key for key, _ in candidates))
    genuine: list[Copy] = []
    newer: list[Copy] = []
    for key, copy in candidates:
        match batch.judge(resource, key, copy):
            case Verdict.OURS:
                genuine.append((key, copy))
            case Verdict.STRAY:
                remove(cluster_id, resource, copy, *key, now)
            case Verdict.UNKNOWN if _is_over(key):
                remove(cluster_id, resource, copy, *key, now)
            case Verdict.UNKNOWN if Job.objects.filter(uid=key[0]).exists():
                newer.append((key, copy))
            case Verdict.UNKNOWN:
                batch.report(resource, copy, _UNKNOWN, now)
            case Verdict.FOREIGN:
                batch.report(resource, copy, "is labelled as the copy of a job, but was not created by Convoy", now)
    return genuine, newer


def adopt(
    cluster_id: int, resource: Resource, jobs: Mapping[UUID, Job], newer: Sequence[Copy], now: datetime
) -> list[Copy]:
    """Adopts the newest copy of each job as its current attempt and removes the others. Returns the adopted copies."""
    cluster = Cluster.objects.defer("access", "permissions").get(pk=cluster_id) if newer else None
    adopted = []
    for (uid, attempt), copy in sorted(newer, key=lambda copy: copy[0], reverse=True):
        job = jobs.get(uid)
        if cluster is not None and job is not None and restored.adopt(job, cluster, attempt, copy, now):
            adopted.append(((uid, attempt), copy))
            continue
        if job is not None:
            restored.number_above(job, attempt, now)
        remove(cluster_id, resource, copy, uid, attempt, now)
    return adopted


def _is_of_fleet(copy: Manifest, here: str) -> bool:
    """Whether the object may be this fleet's. Objects labelled with another fleet are ignored without a report."""
    fleet = copy["metadata"]["labels"].get(marks.FLEET)
    return fleet is None or fleet == here


def _is_over(key: Key) -> bool:
    """Whether this attempt is known to be superseded or its job deleted, although its work is gone."""
    uid, attempt = key
    superseded = Job.objects.filter(uid=uid, attempt__gte=attempt).exists()
    return superseded or DeletedJob.objects.filter(uid=uid).exists()


def remove(cluster_id: int, resource: Resource, copy: Manifest, uid: UUID, attempt: int, now: datetime) -> None:
    """Removes a copy that should not exist: its work, created if there is none, withdraws it."""
    metadata = copy["metadata"]
    if metadata.get("deletionTimestamp") or metadata["labels"].get(marks.FLEET) != Identity.here():
        return
    work, is_new = Work.objects.get_or_create(
        job_uid=uid,
        attempt=attempt,
        cluster_id=cluster_id,
        defaults={
            "api_version": resource.api_version,
            "kind": resource.kind,
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "state": WORK.target(WorkEvent.LEFTOVER_FOUND),
            "due_at": now,
            "created_at": now,
        },
    )
    same = Work.objects.filter(pk=work.pk, state=work.state)
    if is_new or transitions.move_works(same, WorkEvent.STRAY, due_at=now, tries=0):
        announce_works([work], now)
    events.enqueue("jobs.push", work.pk)
